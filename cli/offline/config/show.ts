import { isSecretKey, REDACTED, redact, redactLine } from '../../../kernel/contract/text/redact.js'
import { patchToml } from '../../../kernel/config/toml/toml-patch.js'
import { parseToml, tomlDiagnostic, type Table } from '../../../kernel/config/toml/toml-file.js'
import type { Paths } from '../../../kernel/contract/index.js'
import type { Cli } from '../../cli.js'
import { CliFailure } from '../../failure.js'
import { harmless } from '../../terminal/text-width.js'
import { ConfigText } from './config-text.js'

/** Prints svc.toml with its comments, and with no secret. */
export async function showConfig (cli: Cli, paths: Paths, options: { readonly json?: true }): Promise<void> {
  const { out } = cli
  const file = new ConfigText(paths)
  const text = await file.read()
  if (text === null) {
    out.note(`There is no ${file.path}, so every setting has its default. \`svc config edit\` creates it.`)
    return options.json === true ? out.json({}) : undefined
  }
  const data = parsed(file.path, text)
  if (options.json === true) return out.json(masked(data))
  out.lines(harmless(maskedText(text, data)).trimEnd().split('\n'))
}

/** The text with other values where a secret stands, in comments too. Pure. */
export function maskedText (text: string, data: Table): string {
  return patchToml(text, masked(data), () => {})
    .split('\n')
    .map(line => redactLine(maskedComment(line)))
    .join('\n')
}

function masked (data: Table): Table {
  return redact(data, redactLine) as Table
}

/** A setting that was taken out of force is as secret as before. */
function maskedComment (line: string): string {
  const [, start, key] = /^(\s*#[#\s]*([\w.-]+)\s*=\s*)\S/.exec(line) ?? []
  return start !== undefined && isSecretKey(key!) ? `${start}"${REDACTED}"` : line
}

function parsed (path: string, text: string): Table {
  try {
    return parseToml(text)
  } catch (error) {
    throw new CliFailure(`${path} ${tomlDiagnostic(error, text, path).message}`, {
      hints: ['It is not shown, because its secrets cannot be recognised. `svc config edit` opens it.']
    })
  }
}
