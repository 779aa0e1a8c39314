/** Somebody who answers what commands ask, in the order of `answers`, and presses `buttons`. */

import type { Ui } from "../src/commands";
import type { Submission } from "../src/rows";

export class Person implements Ui {
  readonly told: string[] = [];
  readonly opened: string[] = [];
  readonly copied: string[] = [];

  constructor(
    private readonly answers: (string | boolean | undefined)[],
    private readonly buttons: string[] = [],
  ) {}

  async input(prompt: string, _: string, check?: (text: string) => string | undefined): Promise<string | undefined> {
    const text = this.answers.shift() as string | undefined;
    const wrong = text === undefined ? undefined : check?.(text);
    if (wrong) throw new Error(`${prompt}: ${wrong}`);
    return text;
  }

  async pick(): Promise<string | undefined> {
    return this.answers.shift() as string | undefined;
  }

  async confirm(): Promise<boolean> {
    return this.answers.shift() as boolean;
  }

  async tell(message: string, ...buttons: string[]): Promise<string | undefined> {
    this.told.push(message);
    const pressed = this.buttons.shift();
    if (pressed && !buttons.includes(pressed)) throw new Error(`There is no button ${pressed}, but ${buttons.join()}`);
    return pressed;
  }

  async wait<T>(_: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return work(new AbortController().signal);
  }

  openRun(run: string): void {
    this.opened.push(run);
  }

  openSubmission(submission: Submission): void {
    this.opened.push(submission.submission);
  }

  async copy(text: string): Promise<void> {
    this.copied.push(text);
  }
}
