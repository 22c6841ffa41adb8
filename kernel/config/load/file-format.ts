import { messageOf, type ConfigFileFormat, type ConfigReading } from '../../contract/index.js'
import { unknownTopKeys } from '../schema/rows.js'
import { checkShape, type Problem, type ShapeOptions } from '../check/shape-check.js'
import type { Table } from '../toml/toml-file.js'

/** What a file says by the format of its plugin. One that throws leaves the last good value. Pure. */
export function readFormat (
  format: ConfigFileFormat, data: Table, { lastGood, words }: Pick<ConfigReading, 'lastGood' | 'words'>, shape: ShapeOptions
): { readonly value: unknown, readonly problems: readonly Problem[] } {
  const problems: Problem[] = []
  const report = (path: readonly string[], message: string): void => { problems.push({ path, message, unknown: false }) }
  const reading: ConfigReading = {
    lastGood,
    words,
    report,
    known: (...keys) => { problems.push(...unknownTopKeys(data, ...keys)) },
    check (schema, value, path) {
      const checked = checkShape(schema, value, { ...shape, userPath: key => [...path, ...key] })
      problems.push(...checked.problems)
      return checked.value
    }
  }
  try {
    return { value: format.read(data, reading), problems }
  } catch (error) {
    report([], `cannot be read: ${messageOf(error)}`)
    return { value: lastGood, problems }
  }
}
