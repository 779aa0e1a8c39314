/** The whole extension in a real editor, against a server that runs. */

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { serverAt } from "../src/connection";
import type { Server } from "../src/server";
import { rest } from "../src/live";
import { Editor } from "./editor";
import { Served } from "./served";

const HOSTILE = `<img src=x onerror="document.title='hacked'"> [x](command:agent0.cancel) </pre><script>1</script>`;
const FILES = { "task.txt": "Notes.\nCompute 2+3.\n", "agent0.toml": "", "hostile.txt": HOSTILE };
const SHOTS = process.env.EDITOR_SHOTS;

let served: Served;
let server: Server;
let editor: Editor;
let run: string;

before(async () => {
  served = await Served.start();
  server = serverAt(served.address);
  run = (await server.api.post("/v1/runs", { body: { profile: "scripted", name: "", adapter: "", settings: {} } })).run;
  const signal = new AbortController().signal;
  while ((await server.runs())[0]?.status !== "finished") await rest(200, signal);
  editor = await Editor.start(served.address, FILES);
});
after(async () => {
  await editor?.stop();
  await served?.stop();
});
afterEach(async (context) => {
  if (SHOTS) await editor.page.screenshot({ path: `${SHOTS}/${context.name.replace(/\W+/g, "-").slice(0, 40)}.png` });
});

const treeRow = (text: string) => editor.page.locator(".monaco-list-row", { hasText: text }).first();

test("the tree lists runs, and tasks below them", async () => {
  await editor.page.locator(".activitybar .action-label[aria-label='Agent0']").click();
  await treeRow(run).waitFor();
  assert.match(await treeRow(run).innerText(), /finished · \d+%/);
  await treeRow(run).click();
  await treeRow("t0-000").waitFor();
});

test("the status bar tells the budget", async () => {
  await editor.page.locator(".statusbar-item", { hasText: "Agent0: no budget" }).waitFor();
});

test("a task's page leads to transcripts", async () => {
  await treeRow("t0-000").click();
  const task = await editor.webview("Attempts");
  await task.locator("button[data-open=attempt]").last().click();
  const attempt = await editor.webview("Verdicts");
  assert.match(await attempt.locator("main").innerText(), /assistant[\s\S]*boxed/);
});

test("a run's page shows its curve", async () => {
  await editor.command("Agent0: Open Run");
  await editor.choose("Which run?", run);
  const page = await editor.webview("Validation accuracy");
  assert.equal(await page.locator("svg circle").count(), 3);
  if (process.env.EDITOR_PICTURE) await editor.page.screenshot({ path: process.env.EDITOR_PICTURE });
});

test("why is a notification", async () => {
  await editor.command("Agent0: Why Did This Run Go So?");
  await editor.choose("Which run?", run);
  assert.match(await editor.notification("no sign that anything went badly"), new RegExp(run));
});

test("the selection is submitted as a task", async () => {
  await editor.file("task.txt");
  await editor.page.locator(".view-line", { hasText: "Compute" }).click({ clickCount: 3 });
  await editor.page.locator(".statusbar-item", { hasText: "selected" }).waitFor();
  await editor.command("Agent0: Submit Selection or File as Task");
  await editor.choose("Which run?", run);
  await editor.answer("The right answer", "");
  await editor.notification(/(right|wrong): /);
  await editor.press("Open");
  const page = await editor.webview("submission-");
  assert.match(await page.locator("pre").first().innerText(), /^Compute 2\+3\.$/);
});

test("a hostile file stays text on the page and in the notification", async () => {
  await editor.file("hostile.txt");
  await editor.command("Agent0: Submit Selection or File as Task");
  await editor.choose("Which run?", run);
  await editor.answer("The right answer", "");
  await editor.notification("undecided");
  assert.equal(await editor.page.locator(".notification-list-item a", { hasText: /^x$/ }).count(), 0);
  await editor.page.locator(".notification-list-item", { hasText: "undecided" }).locator(".monaco-button", { hasText: "Open" }).click();
  const page = await editor.webview("onerror");
  assert.equal(await page.locator("img, main script").count(), 0);
  assert.doesNotMatch(await page.title(), /hacked/);
});

test("a run is forked and cancelled", async () => {
  await editor.command("Agent0: Fork Run");
  await editor.choose("Which run?", run);
  await editor.answer("Behind which event", "150");
  await editor.answer("Other settings", "run.iterations=500");
  await editor.webview("running");
  await treeRow("scripted-fork").waitFor();
  await editor.command("Agent0: Cancel Run");
  await editor.choose("Which run?", "scripted-fork");
  await editor.page.locator(".monaco-dialog-box .monaco-button", { hasText: "Cancel Run" }).click();
  await editor.page.locator(".monaco-list-row", { hasText: /scripted-fork.*cancelled/ }).first().waitFor();
});

test("settings are completed in agent0.toml", async () => {
  await editor.file("agent0.toml");
  await editor.page.keyboard.type("[run.student]\nmax_t");
  await editor.page.keyboard.press("Control+Space");
  const row = editor.page.locator(".suggest-widget .monaco-list-row", { hasText: "max_tokens" }).first();
  await row.waitFor();
  await editor.page.keyboard.press("Enter");
  await editor.page.locator(".view-line", { hasText: "max_tokens =" }).waitFor();
});

test("tasks of a family run in the test view", async () => {
  await editor.command("Testing: Focus on Test Explorer View");
  const item = (text: string) => editor.page.locator(".test-explorer .monaco-list-row", { hasText: text }).first();
  await item(run).click();
  await item("arithmetic").waitFor();
  for (const key of ["ArrowDown", "ArrowRight"]) await editor.page.keyboard.press(key);
  await item("Compute").waitFor();
  for (const key of ["ArrowDown", "Enter"]) await editor.page.keyboard.press(key);
  await item("Compute").locator(".codicon-testing-passed-icon, .codicon-testing-failed-icon").waitFor();
});

test("a level of a family is validated in the test view", async () => {
  const item = (text: string) => editor.page.locator(".test-explorer .monaco-list-row", { hasText: text }).first();
  await editor.page.keyboard.press("Home");
  await item("Task families").click();
  for (const key of ["ArrowDown", "ArrowRight"]) await editor.page.keyboard.press(key);
  await item("level 1").waitFor();
  for (const key of ["ArrowDown", "Enter"]) await editor.page.keyboard.press(key);
  await item("level 1").locator(".codicon-testing-passed-icon, .codicon-testing-failed-icon").waitFor();
});

test("a key is asked for, stored, used, and written nowhere in plain text", async () => {
  const key = /a0_[\w-]+/.exec(served.command("api", "key", "add", "editor", "--scope", "read"))![0];
  await editor.command("Focus on Runs View");
  await editor.command("Agent0: Refresh");
  await editor.page.locator(".sidebar .message", { hasText: "Agent0: Set Key" }).waitFor();
  await editor.command("Agent0: Set Key");
  await editor.answer(`Key for ${served.address}`, key);
  await treeRow(run).waitFor();
  await editor.page.locator(".statusbar-item", { hasText: "Agent0: no budget" }).waitFor();
  assert.deepEqual(editor.filesWith(key), []);
});

test("a server that is away is told in a line with what to do", async () => {
  await editor.command("Agent0: Set Server");
  await editor.answer("Address of the server", "http://127.0.0.1:9");
  await editor.page.locator(".sidebar .message", { hasText: "agent0 up" }).waitFor();
  await editor.page.locator(".sidebar .monaco-list-row", { hasText: run }).waitFor({ state: "hidden" });
});
