import { appendFileSync, chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Entry {
  readonly unit: string
  /** Of syslog: 0 is the worst. */
  readonly priority: number
  readonly text: string
}

/**
 * A journalctl on its own little journal, that refuses what the real one refuses: options it does not know, levels, numbers
 * and times that are none.
 */
const script = `#!${process.execPath}
const { appendFileSync, existsSync, readFileSync, watch } = require('node:fs')
const { join } = require('node:path')
const fail = text => { process.stderr.write(text + '\\n'); process.exit(1) }
const levels = ['emerg', 'alert', 'crit', 'err', 'warning', 'notice', 'info', 'debug']
const known = new Set(['unit', 'lines', 'since', 'priority', 'output'])
const flags = new Set(['no-pager', 'no-hostname', 'follow'])
const options = {}
for (const arg of process.argv.slice(2)) {
  const match = /^--([a-z-]+)(?:=([^]*))?$/.exec(arg)
  if (match === null) fail('Failed to add match \\'' + arg + '\\': Invalid argument')
  const [, name, value] = match
  if (flags.has(name) && value === undefined) options[name] = true
  else if (known.has(name) && value !== undefined) options[name] = value
  else fail("journalctl: unrecognized option '--" + name + "'")
}
if (options.output !== 'short-iso') fail('Unknown output format ' + options.output + '.')
if (!/^\\d+$/.test(options.lines)) fail("Failed to parse lines '" + options.lines + "'")
if (options.priority !== undefined && !levels.includes(options.priority)) fail('Unknown log level ' + options.priority)
if (options.since !== undefined && !/^(-\\d+[smhd]|yesterday|today|now|@\\d+|\\d{4}-\\d\\d-\\d\\d( \\d\\d:\\d\\d(:\\d\\d)?)?)$/.test(options.since)) fail('Failed to parse timestamp: ' + options.since)
appendFileSync(join(__dirname, 'calls'), JSON.stringify({ pid: process.pid, args: process.argv.slice(2), env: Object.keys(process.env) }) + '\\n')
const unit = /\\.[a-z]+$/.test(options.unit) ? options.unit : options.unit + '.service'
const file = join(__dirname, 'journal')
const most = options.priority === undefined ? 7 : levels.indexOf(options.priority)
const all = () => existsSync(file) ? readFileSync(file, 'utf8').split('\\n').filter(Boolean).map(line => JSON.parse(line)) : []
const fitting = () => all().filter(entry => entry.unit === unit && entry.priority <= most)
const print = entry => process.stdout.write('2026-01-31T12:00:00+0000 svc[42]: ' + entry.text + '\\n')
if (existsSync(join(__dirname, 'denied'))) process.stderr.write('No journal files were opened due to insufficient permissions.\\n')
let shown = fitting().length
const first = fitting().slice(-Number(options.lines))
if (first.length === 0 && !options.follow) process.stdout.write('-- No entries --\\n')
for (const entry of first) print(entry)
if (options.follow) {
  const more = () => { for (const entry of fitting().slice(shown)) { print(entry); shown++ } }
  watch(__dirname, more)
  more()
}
`

export class FakeJournalctl {
  readonly #folder: string
  readonly command: string

  constructor (folder: string) {
    this.#folder = folder
    this.command = join(folder, 'journalctl.cjs')
    writeFileSync(this.command, script)
    chmodSync(this.command, 0o755)
  }

  write (...entries: readonly Entry[]): void {
    appendFileSync(join(this.#folder, 'journal'), entries.map(entry => `${JSON.stringify(entry)}\n`).join(''))
  }

  /** The journal is not for this user. */
  deny (): void {
    writeFileSync(join(this.#folder, 'denied'), '')
  }

  get calls (): ReadonlyArray<{ readonly pid: number, readonly args: readonly string[], readonly env: readonly string[] }> {
    const file = join(this.#folder, 'calls')
    return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').map(line => JSON.parse(line)) : []
  }

  get running (): readonly number[] {
    return this.calls.map(({ pid }) => pid).filter(isAlive)
  }
}

function isAlive (pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
