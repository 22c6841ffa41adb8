import { isDeepStrictEqual } from 'node:util'
import type { ConfigFileDefinition, ProviderWords } from '../../contract/index.js'
import type { DraftFiles } from './draft-files.js'
import { readFormat } from '../load/file-format.js'
import { checkShape, invalid } from '../check/shape-check.js'
import type { Table } from '../toml/toml-file.js'

interface OwnedEdit {
  /** What the draft has of it. */
  readonly held: unknown
  readonly words: ProviderWords
  readonly edit: (data: Table, words: ProviderWords) => Readonly<Record<string, unknown>>
}

/** As `ConfigDraft.editFile`, of a file that a plugin owns. */
export async function editOwned (
  files: DraftFiles, definition: ConfigFileDefinition, { held, words, edit }: OwnedEdit
): Promise<unknown> {
  const { file, schema, format } = definition
  let next: unknown
  const judged = (data: Table, before: Table): Table => {
    const shape = { audience: 'client', written: true } as const
    const reading = { lastGood: held ?? schema.parse({}), words }
    const checked = format === undefined ? checkShape(schema, data, shape) : readFormat(format, data, reading, shape)
    const old = format === undefined || checked.problems.length === 0 ? [] : readFormat(format, before, reading, shape).problems
    const problems = checked.problems.filter(problem => !old.some(known => isDeepStrictEqual(known, problem)))
    if (problems.length > 0) throw invalid(file, problems)
    next = checked.value
    return data
  }
  const before = await files.toml(file)
  const ending = before === null ? null : format?.backup?.(before.data) ?? null
  await files.editToml(file, data => judged({ ...edit(data, words) }, data))
  if (before !== null && ending !== null) await files.replace('etc', `${file}${ending}`, before.text)
  return next
}
