/** What may be written at a place of agent0.toml, by the JSON schema of the settings. */

export interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  type?: string;
  description?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  enum?: unknown[];
  anyOf?: Schema[];
  default?: unknown;
  examples?: unknown[];
}

export interface Proposal {
  label: string;
  insert: string;
  kind: "table" | "key" | "value";
  detail: string;
  about: string;
}

const PART = /"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+)/g;

/** The parts of a dotted key; quoted ones without their marks. */
export function keyParts(key: string): string[] {
  return [...key.matchAll(PART)].map((match) => match[1] ?? match[2] ?? match[3] ?? "");
}

/** The schema that a reference names, or its choices as one; of others it is the schema itself. */
function resolved(root: Schema, schema: Schema): Schema {
  if (schema.$ref === "#") return root;
  const named = schema.$ref ? root.$defs?.[schema.$ref.split("/").pop() ?? ""] : undefined;
  if (named) return { ...named, ...schema, $ref: undefined };
  const choices = (schema.anyOf ?? []).filter((choice) => choice.type !== "null");
  return choices.length ? Object.assign({}, ...choices.map((choice) => resolved(root, choice)), { ...schema, anyOf: undefined }) : schema;
}

/** The schema at a path of keys; undefined where no setting is. */
export function schemaAt(root: Schema, path: string[]): Schema | undefined {
  let current: Schema | undefined = resolved(root, root);
  for (const part of path) {
    const more: boolean | Schema | undefined = current?.additionalProperties;
    const next: Schema | undefined = current?.properties?.[part] ?? (typeof more === "object" ? more : undefined);
    if (!next) return undefined;
    current = resolved(root, next);
  }
  return current;
}

/** The table that a line is in: the last header above it. */
export function tableAbove(lines: string[]): string[] {
  for (const line of [...lines].reverse()) {
    const header = /^\s*\[{1,2}\s*([^\]]+?)\s*\]{1,2}\s*(?:#.*)?$/.exec(line);
    if (header) return keyParts(header[1] ?? "");
  }
  return [];
}

function isTable(schema: Schema): boolean {
  return schema.properties !== undefined || typeof schema.additionalProperties === "object";
}

function keysOf(root: Schema, path: string[], tables: boolean): Proposal[] {
  const properties = schemaAt(root, path)?.properties ?? {};
  return Object.entries(properties).flatMap(([name, property]) => {
    const schema = resolved(root, property);
    if (tables ? !isTable(schema) : isTable(schema) && !schema.examples) return [];
    const shown = schema.default === undefined || isTable(schema) ? "" : `default ${JSON.stringify(schema.default)}`;
    const about = schema.description ?? "";
    return [{ label: name, insert: tables ? name : `${name} = `, kind: tables ? "table" : "key", detail: shown, about }];
  });
}

function valuesOf(schema: Schema | undefined): Proposal[] {
  if (!schema) return [];
  const choices = schema.enum ?? schema.examples ?? (schema.type === "boolean" ? [true, false] : []);
  const values = choices.length || schema.default === undefined || isTable(schema) ? choices : [schema.default];
  return values
    .filter((value) => value !== null)
    .map((value) => JSON.stringify(value))
    .map((label) => ({ label, insert: label, kind: "value", detail: "", about: schema.description ?? "" }));
}

/** What may stand at the end of `before`, the line up to the cursor, below the lines `above`. */
export function proposals(root: Schema, above: string[], before: string): Proposal[] {
  const header = /^\s*\[{1,2}\s*([\w."'-]*)$/.exec(before);
  if (header) return keysOf(root, keyParts((header[1] ?? "").replace(/[^.]*$/, "")), true);
  const value = /^\s*([\w."'-]+)\s*=\s*[^#]*$/.exec(before);
  const table = tableAbove(above);
  if (value) return valuesOf(schemaAt(root, [...table, ...keyParts(value[1] ?? "")]));
  const key = /^\s*([\w."'-]*)$/.exec(before);
  if (!key) return [];
  const path = [...table, ...keyParts((key[1] ?? "").replace(/[^.]*$/, ""))];
  const dotted = keysOf(root, path, true).map((proposal) => ({ ...proposal, insert: `${proposal.label}.` }));
  return [...keysOf(root, path, false), ...dotted];
}

/** What a setting means, for who points at its name; empty where the line names none. */
export function meaning(root: Schema, above: string[], line: string): string {
  const key = /^\s*([\w."'-]+)\s*=/.exec(line);
  const header = /^\s*\[{1,2}\s*([^\]]+?)\s*\]/.exec(line);
  const path = header ? keyParts(header[1] ?? "") : key ? [...tableAbove(above), ...keyParts(key[1] ?? "")] : [];
  return path.length ? (schemaAt(root, path)?.description ?? "") : "";
}
