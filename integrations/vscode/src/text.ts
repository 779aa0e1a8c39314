/** Texts that models and other people wrote, made fit to be shown. */

const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;
const ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** Characters that hide or turn what stands around them are written out as ‹U+202E›. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return `‹U+${code.toString(16).toUpperCase().padStart(4, "0")}›`;
  });
}

/** Text for HTML, in elements and in quoted attributes. */
export function escaped(text: unknown): string {
  return visible(String(text ?? "")).replace(/[&<>"']/g, (character) => ENTITIES[character] ?? "");
}

/** One line for labels and notifications, at most `longest` characters. The editor makes links of `[text](address)`,
 *  even such that run commands, and icons of `$(name)`: neither is left in it. */
export function plain(text: unknown, longest = 300): string {
  const line = visible(String(text ?? "").replace(/\s+/g, " ").trim()).replace(/\]\(/g, "] (").replace(/\$\(/g, "$ (");
  return line.length > longest ? `${line.slice(0, longest - 1)}…` : line;
}

/** A share as whole percents; empty where it is not known. */
export function percent(share: number | null | undefined): string {
  return share === null || share === undefined ? "" : `${Math.round(share * 100)}%`;
}

/** Nano-dollars as dollars with cents, small amounts with four digits. */
export function dollars(nano: number): string {
  const amount = nano / 1e9;
  return `$${amount !== 0 && Math.abs(amount) < 0.01 ? amount.toFixed(4) : amount.toFixed(2)}`;
}
