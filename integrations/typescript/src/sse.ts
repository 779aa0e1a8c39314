/** Reads the text of an event stream: messages count when they are whole, so one that is cut in the middle is none. */
export class MessageReader {
  #rest = "";
  #data: string[] = [];
  #afterReturn = false;

  /** The data of the messages that are whole with `text`, in order; comments and other fields are passed over. */
  push(text: string): string[] {
    if (text === "") return [];
    const lines = (this.#rest + (this.#afterReturn && text.startsWith("\n") ? text.slice(1) : text)).split(/\r\n|\r|\n/);
    this.#afterReturn = text.endsWith("\r");
    this.#rest = lines.pop()!;
    const messages: string[] = [];
    for (const line of lines) {
      if (line === "") {
        if (this.#data.length > 0) messages.push(this.#data.join("\n"));
        this.#data = [];
      } else if (line === "data" || line.startsWith("data:")) {
        this.#data.push(line.slice(line.startsWith("data: ") ? 6 : 5));
      }
    }
    return messages;
  }
}
