import { type NamedToolServer, type ProgramSpec, type SvcError } from 'svc-gateway/plugin'
import { mcpError } from './errors.js'
import type { SourceKind } from './ref.js'

/** What a spec says, in the one way that the gateway writes it. */
export interface ParsedSpec {
  readonly kind: SourceKind
  readonly spec: string
  /** Package, image or URL. */
  readonly target: string
}

/** None begins with a dash: it would be an option of the program that runs it. */
const npmPackage = /^(@[a-z0-9~][a-z0-9._~-]*\/)?[a-z0-9~][a-z0-9._~-]*(@[\w.^~*<>=+-]+)?$/i
const pythonPackage = /^[a-z0-9][\w.-]*(\[[\w,-]+\])?((==|@)[\w.*+!-]+)?$/i
const image = /^[a-z0-9][\w.-]*(:\d+)?(\/[\w.-]+)*(:[\w.-]+)?(@sha256:[0-9a-f]{64})?$/i

/** Null for what no rule of the gateway knows. Pure. */
export function parseSpec (text: string): ParsedSpec | null {
  const [, scheme = '', rest = ''] = /^([a-z][a-z0-9+]*):(.*)$/s.exec(text.trim()) ?? []
  switch (scheme) {
    case 'npm': case 'npx': return npmPackage.test(rest) ? { kind: 'npm', spec: `npm:${rest}`, target: rest } : null
    case 'uvx': case 'uv': return pythonPackage.test(rest) ? { kind: 'uvx', spec: `uvx:${rest}`, target: rest } : null
    case 'oci': {
      const target = rest.replace(/^\/\//, '')
      return image.test(target) ? { kind: 'oci', spec: `oci://${target}`, target } : null
    }
    case 'git+https': return URL.canParse(`https:${rest}`) ? { kind: 'git', spec: text.trim(), target: `https:${rest}` } : null
    case 'http': case 'https': return URL.canParse(text.trim()) ? { kind: 'http', spec: text.trim(), target: text.trim() } : null
    default: return null
  }
}

export type Launch =
  | { readonly kind: 'program', readonly form: ProgramSpec['form'] }
  | { readonly kind: 'remote', readonly url: string }

/** Whether a server is reached and not run, also where its spec is of no use. Pure. */
export function isRemote ({ command, spec, url }: NamedToolServer): boolean {
  return command === undefined && (url !== undefined || /^https?:/.test(spec))
}

/** How a server is run or reached. Throws `mcp.spec_unsupported`. Pure. */
export function launchOf ({ id, command, args, spec, url, transport, port }: NamedToolServer): Launch {
  if (command !== undefined) return { kind: 'program', form: { kind: 'process', command, args } }
  if (url !== undefined) return { kind: 'remote', url }
  const parsed = parseSpec(spec)
  if (parsed?.kind === 'http') return { kind: 'remote', url: parsed.target }
  if (parsed?.kind === 'npm') return { kind: 'program', form: { kind: 'process', command: 'npx', args: ['-y', parsed.target, ...args] } }
  if (parsed?.kind === 'uvx') return { kind: 'program', form: { kind: 'process', command: 'uvx', args: [parsed.target, ...args] } }
  if (parsed?.kind === 'oci') {
    return { kind: 'program', form: { kind: 'container', image: parsed.target, args, port: transport === 'stdio' ? null : port } }
  }
  throw parsed?.kind === 'git' ? noRepository(spec) : unsupported(spec, `tool server ${id}`)
}

/** Nothing says how it is built, and it is something else tomorrow. */
export function noRepository (spec: string): SvcError {
  return mcpError('mcp.spec_unsupported',
    `${spec} is a repository, which the gateway does not build; give its package (npm:<package>, uvx:<package>) or its image (oci://<image>), or install what you have built as command with args`)
}

export function unsupported (spec: string, who = 'the tool server'): SvcError {
  return mcpError('mcp.spec_unsupported',
    `${who} has the spec '${spec}', which is not npm:<package>, uvx:<package>, oci://<image> or http(s)://<server>; or set command`)
}
