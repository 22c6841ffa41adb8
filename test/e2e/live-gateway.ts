import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { bin } from '../program.js'

/** A gateway as an operator runs it: the real program, in a process of its own. */
export interface LiveGateway {
  readonly url: string
  readonly pid: number
  /** Everything it wrote to standard error so far. */
  readonly log: () => string
  /** Resolves when it has ended. */
  readonly ended: Promise<unknown>
  kill (signal: NodeJS.Signals): Promise<number | null>
}

/** A home in a temporary folder, with files by path below it. Removed after the test. */
export async function liveHome (t: Test, files: Readonly<Record<string, string | Buffer>>): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), 'svc-e2e-'))
  t.teardown(() => rm(home, { recursive: true, force: true }))
  await writeHome(home, files)
  return home
}

export async function writeHome (home: string, files: Readonly<Record<string, string | Buffer>>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(home, path)), { recursive: true })
    await writeFile(join(home, path), content)
  }
}

/**
 * Starts `svc serve` on the home and waits until it is ready; answers that do not fit the OpenAPI document are failures.
 * Killed after the test when it still runs.
 * @param user number of the user who runs it; only root may choose
 * @param wrapper a command that runs the program, with its arguments
 * @param port 0 takes any free one
 */
export async function startLive (
  t: Test, home: string, env: Readonly<Record<string, string>> = {}, user?: number, wrapper: readonly string[] = [], port = 0
): Promise<LiveGateway> {
  const command = [...wrapper, process.execPath, bin, 'serve', '--home', home, '--port', String(port), '--ready-json', '--check-answers']
  const child: ChildProcess = spawn(command[0]!, command.slice(1), {
    env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'], ...(user === undefined ? {} : { uid: user, gid: user })
  })
  const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>
  t.teardown(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await exited
  })
  let log = ''
  child.stderr!.on('data', (chunk: Buffer) => { log += chunk.toString() })
  const line = await Promise.race([
    once(createInterface({ input: child.stdout! }), 'line').then(([first]) => String(first)),
    exited.then(([code]) => { throw new Error(`the gateway ended with ${String(code)}: ${log}`) })
  ])
  const { url } = JSON.parse(line) as { url: string }
  return {
    url,
    pid: child.pid!,
    log: () => log,
    ended: exited,
    kill: async signal => {
      child.kill(signal)
      const [code] = await exited
      return code
    }
  }
}

export function chat (url: string, body: Readonly<Record<string, unknown>>, signal?: AbortSignal): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'agent', messages: [{ role: 'user', content: 'Hello' }], ...body }),
    ...(signal === undefined ? {} : { signal })
  })
}

/** The text of a streamed answer, and whether it ended with `[DONE]` or with an error event. */
export function readStream (text: string): { readonly content: string, readonly done: boolean, readonly error: string | null } {
  let content = ''
  let error: string | null = null
  for (const line of text.split('\n')) {
    if (!line.startsWith('data: ') || line === 'data: [DONE]') continue
    const event = JSON.parse(line.slice(6)) as { choices?: Array<{ delta?: { content?: string } }>, error?: { code: string } }
    if (event.error !== undefined) error = event.error.code
    content += event.choices?.[0]?.delta?.content ?? ''
  }
  return { content, done: text.includes('data: [DONE]'), error }
}

/** Null for an answer that is no JSON. */
export async function api (
  gateway: { readonly url: string }, method: string, path: string, body?: object
): Promise<{ status: number, json: unknown }> {
  const response = await fetch(`${gateway.url}${path}`, {
    method, ...body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  })
  return { status: response.status, json: await response.json().catch(() => null) as unknown }
}
