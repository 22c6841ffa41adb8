import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createLineSplitter, shownLine, type CleanText } from 'svc-gateway/plugin'
import { servicesError } from './errors.js'

const LAST_LINES = 12
const PASSED = new RegExp(`^(${[
  'PATH', 'HOME', 'USER', 'LOGNAME', 'LANG', 'LC_.*', 'TZ', 'TMPDIR', 'XDG_CACHE_HOME', 'PIP_.*', 'UV_.*', 'PYENV_.*', 'SSL_CERT_.*',
  'NPM_CONFIG_.*', 'NODE_EXTRA_CA_CERTS', 'REQUESTS_CA_BUNDLE', '(https?|no|all)_proxy'
].join('|')})$`, 'i')

export interface InstallOptions {
  /** Environments are made in it, one folder for each. */
  readonly folder: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly signal: AbortSignal
  readonly clean: CleanText
  readonly onMessage: (message: string) => void
}

/** What a program writes, trimmed; null when it cannot be run or fails. */
export function output (command: string, args: readonly string[], env: InstallOptions['env']): Promise<string | null> {
  return new Promise(resolve => {
    const options = { env: installerEnv(env), timeout: 20_000 }
    execFile(command, args, options, (error, stdout) => resolve(error === null ? stdout.trim() : null))
  })
}

/**
 * Runs a program that installs something, and hands on what it says. Throws `services.install_failed`, with its last lines as
 * `output` in the details.
 * @param title what errors call it
 */
export async function run (
  command: string, args: readonly string[], { folder, env, signal, clean, onMessage }: InstallOptions,
  title = `${command.split('/').at(-1)!} ${args[0]!}`
): Promise<void> {
  signal.throwIfAborted()
  const child = spawn(command, args, { env: installerEnv(env), cwd: folder, stdio: ['ignore', 'pipe', 'pipe'], signal, killSignal: 'SIGKILL' })
  const lines: string[] = []
  const read = (stream: NodeJS.ReadableStream): void => {
    const splitter = createLineSplitter()
    const take = (line: string): void => {
      const shown = shownLine(line, clean)
      if (shown === '') return
      lines.push(shown)
      if (lines.length > LAST_LINES) lines.shift()
      // the list of what was installed is no progress
      if (!/^[+-] /.test(shown)) onMessage(shown)
    }
    stream.on('data', (chunk: Buffer) => splitter.push(chunk).forEach(take))
    stream.on('end', () => splitter.end().forEach(take))
  }
  read(child.stdout)
  read(child.stderr)
  const [code] = await once(child, 'close').catch((error: unknown) => {
    signal.throwIfAborted()
    throw servicesError('services.install_failed', `${command} cannot be run: ${String(error)}`)
  }) as [number | null]
  if (code === 0) return
  throw servicesError('services.install_failed', `${title} ended with ${code}: ${lines.slice(-3).join(' | ')}`, { details: { output: lines } })
}

/** What installers are told: how to reach registries, and nothing that is a key of the gateway's. */
function installerEnv (env: InstallOptions['env']): Record<string, string> {
  const passed = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined && PASSED.test(entry[0]))
  return Object.fromEntries(passed)
}
