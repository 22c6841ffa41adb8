import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import autocannon from 'autocannon'
import { runClients } from './clients.js'

/** One load run. Latencies in milliseconds. */
export interface LoadResult {
  readonly requestsPerS: number
  readonly p50: number
  readonly p99: number
  readonly requests: number
  readonly errors: number
}

/** Which model is asked for, and the headers that a gateway wants besides the content type. */
export interface ChatCall {
  readonly model: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Any other request with a JSON body. */
export interface PostCall {
  readonly path: string
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
}

const agent: ChatCall = { model: 'agent' }

function postOf (call: ChatCall | PostCall): PostCall {
  if ('path' in call) return call
  const { model, headers = {} } = call
  const messages = [{ role: 'user', content: 'Tell me something nice about proxies.' }]
  return { path: '/v1/chat/completions', body: JSON.stringify({ model, messages, max_tokens: 64 }), headers }
}

export const loadTool = hasWrk() ? 'wrk' : 'autocannon'

/** Posts the same request over and over. */
export function load (
  origin: string, connections: number, seconds: number, call: ChatCall | PostCall = agent
): Promise<LoadResult> {
  const post = postOf(call)
  if (loadTool === 'wrk') return runWrk(origin, connections, seconds, post)
  // autocannon counts in whole milliseconds, which is longer than any of these takes
  return connections === 1 ? runAlone(origin, seconds, post) : runAutocannon(origin, connections, { duration: seconds }, post)
}

/** A fixed number of requests. */
export function loadCount (origin: string, connections: number, amount: number): Promise<LoadResult> {
  return runAutocannon(origin, connections, { amount }, postOf(agent))
}

function hasWrk (): boolean {
  try {
    execFileSync('wrk', ['-v'], { stdio: 'ignore' })
    return true
  } catch (error) {
    return (error as { status?: number | null }).status === 1
  }
}

function runAlone (origin: string, seconds: number, { path, body, headers = {} }: PostCall): Promise<LoadResult> {
  return runClients(origin, { path, contentType: 'application/json', headers, body: Buffer.from(body) }, 1, seconds)
}

async function runAutocannon (
  origin: string, connections: number, extent: { duration: number } | { amount: number }, { path, body, headers }: PostCall
): Promise<LoadResult> {
  const result = await autocannon({
    url: `${origin}${path}`, method: 'POST', connections, body, headers: { 'content-type': 'application/json', ...headers }, ...extent
  })
  return {
    requestsPerS: result.requests.total / result.duration,
    p50: result.latency.p50,
    p99: result.latency.p99,
    requests: result.requests.total,
    errors: result.errors + result.non2xx
  }
}

async function runWrk (
  origin: string, connections: number, seconds: number, { path, body, headers = {} }: PostCall
): Promise<LoadResult> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-bench-wrk-'))
  const script = join(folder, 'post.lua')
  writeFileSync(script, `
wrk.method = "POST"
wrk.body = ${JSON.stringify(body)}
wrk.headers["Content-Type"] = "application/json"
${Object.entries(headers).map(([name, value]) => `wrk.headers[${JSON.stringify(name)}] = ${JSON.stringify(value)}`).join('\n')}
done = function (summary, latency)
  local e = summary.errors
  io.write(string.format("RESULT %d %d %f %f %d\\n", summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), e.connect + e.read + e.write + e.status + e.timeout))
end`)
  try {
    const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', script, `${origin}${path}`]
    const text = await new Promise<string>((resolve, reject) => {
      execFile('wrk', args, (error, stdout) => error === null ? resolve(stdout) : reject(error))
    })
    const [, requests, micros, p50, p99, errors] = /RESULT (\d+) (\d+) ([\d.]+) ([\d.]+) (\d+)/.exec(text)!.map(Number)
    return { requestsPerS: requests! / (micros! / 1e6), p50: p50! / 1000, p99: p99! / 1000, requests: requests!, errors: errors! }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
