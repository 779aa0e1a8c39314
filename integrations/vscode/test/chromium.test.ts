/** Pages with hostile text in a browser: nothing of it runs, and nothing is asked of anybody. */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { chromium } from "playwright-core";
import { attemptBody, runBody, wholePage } from "../src/pages";
import { CHROMIUM } from "./editor";
import { attempt, run, task } from "./rows";

test("a hostile page runs nothing", { skip: existsSync(CHROMIUM) ? false : `there is no ${CHROMIUM}` }, async () => {
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
  try {
    const page = await browser.newPage();
    page.setDefaultTimeout(120_000);
    const asked: string[] = [];
    const ran: string[] = [];
    page.on("requestfinished", (request) => asked.push(request.url()));
    await page.exposeFunction("hacked", () => ran.push("hacked"));
    await page.addInitScript("window.acquireVsCodeApi = () => ({ postMessage: (message) => (window.sent = message) })");
    await page.route("http://page.test/", (route) => route.fulfill({ contentType: "text/html", body: wholePage("a", runBody(run, [task]), "n0") }));
    await page.goto("http://page.test/");
    await page.evaluate((body) => window.postMessage({ body }, "*"), attemptBody(attempt));
    await page.locator(".turn").waitFor();
    const refused = page.waitForEvent("requestfailed");
    await page.evaluate(() => document.body.insertAdjacentHTML("beforeend", "<img src=https://other.test/x onerror=hacked()>"));
    assert.equal((await refused).failure()?.errorText, "csp");
    await page.evaluate((body) => window.postMessage({ body }, "*"), runBody(run, [task]));
    await page.locator("button[data-open=task]").click();
    assert.deepEqual(await page.evaluate(() => (window as unknown as { sent: { open: string } }).sent.open), "task");
    assert.deepEqual([ran, asked], [[], ["http://page.test/"]]);
  } finally {
    await browser.close();
  }
});
