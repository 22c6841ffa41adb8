import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { bin } from '../program.js'

const clock = new URL('./jumping-clock.js', import.meta.url).href

const READY_MS = 90_000

/** The real program on the home, until it is killed. */
export class OutageGateway {
  readonly #child: ChildProcess
  readonly #exited: Promise<readonly [number | null, NodeJS.Signals | null]>
  readonly #ready: Promise<string>
  #log = ''

  constructor (home: string, env: Readonly<Record<string, string>>) {
    const args = ['--import', clock, bin, 'serve', '--home', home, '--port', '0', '--ready-json', '--log-level', 'warn']
    this.#child = spawn(process.execPath, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
    this.#exited = once(this.#child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>
    this.#child.stderr!.on('data', (chunk: Buffer) => { this.#log = (this.#log + chunk.toString()).slice(-20_000) })
    this.#ready = once(createInterface({ input: this.#child.stdout! }), 'line').then(([line]) => (JSON.parse(String(line)) as { url: string }).url)
    this.#ready.catch(() => undefined)
  }

  get log (): string { return this.#log }

  /** Its address; rejects with what it wrote when it ends before, or takes too long. */
  async url (): Promise<string> {
    const late = new AbortController()
    try {
      return await Promise.race([
        this.#ready,
        this.#exited.then(([code]) => { throw new Error(`ended with ${String(code)}: ${this.#log.slice(-1_000)}`) }),
        new Promise<string>((_resolve, reject) => {
          const timer = setTimeout(() => reject(new Error(`is not ready after ${READY_MS / 1000} s: ${this.#log.slice(-1_000)}`)), READY_MS)
          late.signal.addEventListener('abort', () => clearTimeout(timer))
        })
      ])
    } finally {
      late.abort()
    }
  }

  async end (signal: NodeJS.Signals): Promise<number | null> {
    this.#child.kill(signal)
    const [code] = await this.#exited
    return code
  }
}
