import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import type { Test } from 'tap'

/** Answers a line, or serves; what it was told is in its answer. Version 2 works no more. */
export const tinyProgram = (version: string): string => `#!/usr/bin/env node
const last = process.argv.at(-1)
if (${JSON.stringify(version)}.startsWith('2')) { console.log('this version is broken'); process.exit(1) }
const told = () => JSON.stringify({ ok: true, version: ${JSON.stringify(version)}, pid: process.pid, args: process.argv.slice(2), env: process.env })
if (last === '--ask') process.stdin.once('data', () => { console.log('one moment'); console.log(told()); process.stdin.once('end', () => process.exit(0)) })
else {
  const server = require('node:http').createServer((_request, response) => response.end(told())).listen(Number(last), '127.0.0.1')
  const { WebSocketServer } = require(${JSON.stringify(createRequire(import.meta.url).resolve('ws'))})
  new WebSocketServer({ server, verifyClient: ({ req }) => req.url === '/ws?token=' + process.env.SECRET && req.headers.origin === undefined }).on('connection', socket => {
    const say = message => socket.send(JSON.stringify({ jsonrpc: '2.0', ...message }))
    const event = (type, payload) => say({ method: 'event', params: { type, session_id: '0123abcd', payload } })
    event('gateway.ready', {})
    socket.on('message', data => {
      const { id, method, params } = JSON.parse(data)
      const answers = {
        'session.create': () => ({ session_id: '0123abcd', stored_session_id: 'kept' }),
        'session.resume': () => params.session_id === 'kept' ? { session_id: '0123abcd', stored_session_id: 'kept' } : null,
        'session.history': () => ({ count: 1, messages: [{ role: 'user', content: 'hello' }] }),
        'config.set': () => ({ ...params, history_reset: false }),
        'prompt.submit': () => ({ status: 'streaming' }),
        'approval.respond': () => ({ resolved: 1 }),
        'clarify.respond': () => ({ status: 'ok' })
      }
      const result = answers[method]?.() ?? null
      say(result === null ? { id, error: { code: 4001, message: params.session_id === 'odd' ? { toString: 1 } : 'not found: ' + method } } : { id, result, ...method === 'session.history' ? { error: null } : {} })
      if (method === 'approval.respond' || method === 'clarify.respond') event('message.complete', { text: JSON.stringify(params) })
      if (method !== 'prompt.submit') return
      if (params.text === 'die') process.exit(1)
      if (params.text === 'ask late') {
        for (const n of [1, 2]) {
          event('tool.start', { tool_id: 't' + n, name: 'terminal' })
          event('approval.request', { command: 'rm -r ' + n, choices: ['once', 'deny'] })
          if (n === 1) event('tool.complete', { tool_id: 't1', name: 'terminal' })
        }
        return
      }
      if (params.text === 'ask') return event('approval.request', { command: 'rm -r x', choices: ['once', 'session', 'always', 'deny'] })
      if (params.text === 'ask most') return Array.from({ length: 256 }, (_, i) => event('approval.request', { command: 'rm -r ' + i }))
      if (params.text === 'ask on') for (let i = 0; i < 257; i++) event('approval.request', { command: 'rm -r x' })
      if (params.text === 'ask much') for (let i = 0; i < 3; i++) event('approval.request', { command: 'rm -r ' + 'x'.repeat(6_000_000) })
      if (params.text === 'deep') return socket.send('{"method":"event","params":{"type":"a","payload":{"b":' + '['.repeat(200_000) + ']'.repeat(200_000) + '}}}')
      if (params.text === 'unclear') return event('clarify.request', { question: 'Which?', choices: ['a', 'b'], request_id: 'q1' })
      for (const text of ['hm', 'well', '']) event('thinking.delta', { text })
      for (const text of ['o', 'n', 'e']) event('message.delta', { text })
      event('message.complete', { text: 'one' })
    })
  })
}
`

function tarball (files: Readonly<Record<string, { text: string, mode: number }>>): Buffer {
  const blocks: Buffer[] = []
  for (const [name, { text, mode }] of Object.entries(files)) {
    const header = Buffer.alloc(512)
    const put = (value: string, at: number): void => { header.write(value, at, 'latin1') }
    put(`package/${name}`, 0)
    put(`${mode.toString(8).padStart(7, '0')}\0`, 100)
    put('0000000\0', 108)
    put('0000000\0', 116)
    put(`${Buffer.byteLength(text).toString(8).padStart(11, '0')}\0`, 124)
    put('00000000000\0', 136)
    put('        ', 148)
    put('0', 156)
    put('ustar\u0000', 257)
    put('00', 263)
    put(`${header.reduce((sum, byte) => sum + byte, 0).toString(8).padStart(6, '0')}\0 `, 148)
    blocks.push(header, Buffer.from(text), Buffer.alloc((512 - Buffer.byteLength(text) % 512) % 512))
  }
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024)]))
}

export interface TinyRegistry {
  readonly url: string
  /** Paths that were asked for. */
  readonly asked: readonly string[]
  /** Versions that are there by now; npm keeps what it is told for five minutes. */
  versions: readonly string[]
  /** Packages are not sent before this resolves. */
  held: Promise<void>
}

/** A registry of npm with one package, `tiny-agent`, in the versions 1.0.0 and 3.0.0, the latter of which is 2.9.0 inside. */
export async function tinyRegistry (t: Test): Promise<TinyRegistry> {
  const asked: string[] = []
  const manifest = (version: string): object => ({ name: 'tiny-agent', version, bin: { tiny: 'tiny.js' } })
  const url = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const server = createServer((request, response) => {
    asked.push(request.url!)
    const wanted = /\/-\/tiny-(?<version>[\d.]+)\.tgz$/.exec(request.url!)?.groups?.version
    if (wanted !== undefined) {
      const inside = JSON.stringify(manifest(wanted === '3.0.0' ? '2.9.0' : wanted))
      const bytes = tarball({ 'package.json': { text: inside, mode: 0o644 }, 'tiny.js': { text: tinyProgram(wanted), mode: 0o755 } })
      void registry.held.then(() => response.end(bytes))
      return
    }
    if (request.url !== '/tiny-agent') return void response.writeHead(404).end('{}')
    const versions = Object.fromEntries(registry.versions.map(version =>
      [version, { ...manifest(version), dist: { tarball: `${url()}/tiny-agent/-/tiny-${version}.tgz` } }]))
    response.setHeader('content-type', 'application/json')
    response.setHeader('cache-control', 'public, max-age=300')
    response.end(JSON.stringify({ 'name': 'tiny-agent', 'dist-tags': { latest: registry.versions[0] }, versions }))
  })
  await new Promise<void>(resolve => { server.listen(0, '127.0.0.1', resolve) })
  const registry: TinyRegistry = { url: url(), asked, held: Promise.resolve(), versions: ['1.0.0', '3.0.0'] }
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return registry
}
