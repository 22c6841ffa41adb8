/*
 * A tool server over stdio, by hand: it speaks an older revision, and does at a call whatever a server should not do. What
 * its arguments say it does from the start.
 */
import { spawn } from 'node:child_process'
import { appendFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

interface Message {
  readonly id?: number | string
  readonly method?: string
  readonly params?: object
  readonly result?: unknown
  readonly error?: unknown
}

interface Call {
  readonly name: string
  readonly arguments?: object
  readonly _meta?: { readonly progressToken?: unknown }
}

const options = process.argv.slice(2)
const has = (option: string): boolean => options.includes(option)
const send = (message: object): void => { process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`) }
const notify = (method: string, params: object = {}): void => send({ method, params })
const text = (value: unknown): object => ({ content: [{ type: 'text', text: typeof value === 'string' ? value : JSON.stringify(value) }] })
const schema = { type: 'object', properties: {} }

if (process.env.STARTS !== undefined) appendFileSync(process.env.STARTS, `${process.pid}\n`)
if (has('--dies')) {
  process.stderr.write('\u001b[31mno licence file\u001b[0m\u0007\n')
  process.exit(3)
}
if (has('--prints')) process.stdout.write('Welcome to the odd server!\n')
if (has('--blank')) process.stdout.write('\n'.repeat(9 * 1024 * 1024))
if (has('--batch')) {
  const params = { level: 'info', data: 'x'.repeat(1_000) }
  process.stdout.write(`${JSON.stringify(Array.from({ length: 400 }, () => ({ jsonrpc: '2.0', method: 'notifications/message', params })))}\n`)
}
if (has('--ends-slowly')) process.on('SIGTERM', () => {})
if (has('--stubborn')) {
  process.on('SIGTERM', () => {})
  const child = spawn(process.execPath, ['-e', 'process.on("SIGTERM", () => {}); setInterval(() => {}, 1e9)'], { stdio: 'ignore' })
  if (process.env.STARTS !== undefined) appendFileSync(process.env.STARTS, `${child.pid}\n`)
  setInterval(() => {}, 1e9)
}

const tools: object[] = [
  { name: 'echo', title: 'Echo', description: 'Says it again', inputSchema: { $schema: 'x', type: 'object', properties: { text: { type: 'string' } } }, annotations: { readOnlyHint: true } },
  ...['surroundings', 'crash', 'flood', 'big', 'hang', 'change', 'elicit', 'slow', 'cancelled', 'nest', 'complain'].map(name => ({ name, description: name, inputSchema: schema })),
  { name: 'dotted.name', description: 'has a name that clients refuse', inputSchema: { type: 'object' } },
  ...has('--bad-schemas')
    ? [
        { name: 'no_schema', description: '' },
        { name: 'text_schema', inputSchema: 'object' },
        { name: 'union', inputSchema: { type: 'object', oneOf: [{}] } },
        { inputSchema: schema },
        { name: 'deep', inputSchema: { type: 'object', properties: nested(60) } }
      ]
    : []
]

function nested (levels: number): object {
  return levels === 0 ? {} : { a: nested(levels - 1) }
}

const waiting = new Map<number, (answer: Message) => void>()
let asked = 0
let cancelled = 0

function call (id: number | string, name: string, args: { readonly text?: string, readonly mib?: number }, token: unknown): void {
  const answer = (result: object): void => send({ id, result })
  switch (name) {
    case 'echo': return answer(text(args.text ?? ''))
    case 'dotted.name': return answer(text('dotted'))
    case 'surroundings': return answer(text({ argv: options, env: process.env }))
    case 'crash':
      process.stderr.write('cannot allocate a flux capacitor\n')
      process.exit(7)
      return
    case 'flood': {
      const line = `${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x'.repeat(10_000) } })}\n`
      const more = (): void => {
        while (process.stdout.write(line));
        process.stdout.once('drain', more)
      }
      return more()
    }
    case 'big': return answer(text('x'.repeat((args.mib ?? 50) * 1024 * 1024)))
    case 'hang': return
    // JSON.stringify would not get to the end of it
    case 'nest': process.stdout.write(`{"jsonrpc":"2.0","id":${id},"result":{"content":[],"more":${'['.repeat(100_000)}${']'.repeat(100_000)}}}\n`); return
    case 'complain': return send({ id, error: { code: -32000, message: `the key ${process.env.ODD_TOKEN} is wrong ${'x'.repeat((args.mib ?? 0) * 1024 * 1024)}` } })
    case 'cancelled': return answer(text(String(cancelled)))
    case 'change':
      tools.push({ name: 'extra', description: 'was not there before', inputSchema: schema })
      answer(text('changed'))
      return notify('notifications/tools/list_changed')
    case 'elicit':
      waiting.set(++asked, ({ error, result }) => answer(text({ error, result })))
      return send({ id: asked, method: 'elicitation/create', params: { message: 'Your password?', requestedSchema: { type: 'object', properties: {} } } })
    case 'slow':
      notify('notifications/progress', { progressToken: token, progress: 1, total: 2, message: 'half way' })
      return answer(text('slow'))
    default: return send({ id, error: { code: -32602, message: `no tool ${name}` } })
  }
}

createInterface({ input: process.stdin }).on('line', line => {
  const { id, method, params = {}, ...rest } = JSON.parse(line) as Message
  if (method === undefined) return waiting.get(id as number)?.({ ...rest })
  if (method === 'notifications/cancelled') cancelled++
  if (id === undefined) return
  if (method === 'initialize') {
    if (has('--complains')) return send({ id, error: { code: -32000, message: `the key ${process.env.ODD_TOKEN} is wrong` } })
    return send({
      id,
      result: {
        protocolVersion: '2025-06-18', serverInfo: { name: 'odd', version: '0.9' }, instructions: 'Be careful.',
        capabilities: { tools: { listChanged: true }, resources: {}, prompts: {} }
      }
    })
  }
  if (method === 'tools/list') return send({ id, result: { tools } })
  if (method === 'resources/list') return send({ id, result: { resources: [{ uri: 'odd://one', name: 'one' }] } })
  if (method === 'resources/read') return send({ id, result: { contents: [{ uri: 'odd://one', text: 'the first' }] } })
  if (method === 'prompts/list') return send({ id, result: { prompts: [{ name: 'greet' }] } })
  if (method === 'prompts/get') return send({ id, result: { messages: [{ role: 'user', content: { type: 'text', text: 'Hello' } }] } })
  if (method === 'ping') return send({ id, result: {} })
  if (method === 'tools/call') {
    const { name, arguments: args = {}, _meta: meta } = params as Call
    return call(id, name, args, meta?.progressToken)
  }
  // some older servers never answer what they do not know
  if (!has('--silent')) send({ id, error: { code: -32601, message: `no method ${method}` } })
}).on('close', () => {
  if (has('--ends-slowly')) setTimeout(() => process.exit(0), 400)
  else if (!has('--stubborn')) process.exit(0)
})
