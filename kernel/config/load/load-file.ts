import { join } from 'node:path'
import type { Diagnostic } from '../../contract/index.js'
import type { Part } from '../parts/config-parts.js'
import { toDiagnostics, type Problem } from '../check/shape-check.js'
import { readText } from '../files/read-file.js'
import { parseJson, type Whole } from '../schema/json-files.js'
import type { Rows } from '../schema/rows.js'
import { readToml, type Table } from '../toml/toml-file.js'

/** A TOML file that is a list: broken rows keep their last good value, a broken file all of them. */
export async function loadRows<T> (etc: string, file: string, previous: readonly T[],
  parse: (data: Table, previous: readonly T[]) => Rows<T>): Promise<Part<readonly T[]>> {
  const read = await readToml(join(etc, file), file)
  if (read.status === 'missing') return { value: [], diagnostics: [] }
  if (read.status === 'bad') return { value: previous, diagnostics: [read.diagnostic] }
  const { rows, problems } = parse(read.data, previous)
  return { value: rows, diagnostics: await located(file, read.text, problems) }
}

/** A JSON file that is good or bad as a whole. `absent` is its value when it is not there. */
export async function loadJson<T> (etc: string, file: string, lastGood: T | null, absent: T | null,
  parse: (data: unknown) => Whole<T>): Promise<Part<T | null>> {
  const read = await readText(join(etc, file), file)
  if (read.status === 'missing') return { value: absent, diagnostics: [] }
  if (read.status === 'bad') return { value: lastGood, diagnostics: [read.diagnostic] }
  const json = parseJson(read.text, file)
  if (json.status === 'bad') return { value: lastGood, diagnostics: [json.diagnostic] }
  const checked = parse(json.data)
  return { value: checked.value ?? lastGood, diagnostics: toDiagnostics(file, checked.problems) }
}

/** Line numbers cost another parse, so only files with problems pay for them. */
export async function located (file: string, text: string, problems: readonly Problem[]): Promise<readonly Diagnostic[]> {
  if (problems.length === 0) return []
  const { lineFinder } = await import('../toml/toml-index.js')
  return toDiagnostics(file, problems, lineFinder(text))
}
