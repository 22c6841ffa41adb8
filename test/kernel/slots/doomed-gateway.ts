import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import type { Test } from 'tap'

const run = promisify(execFile)

/** The moment in which a gateway dies: an event of this type whose message holds the text. */
export interface DeathPoint {
  readonly type: string
  readonly message: string
}

export interface DoomedGateway {
  readonly url: string
  readonly gone: Promise<unknown>
  /** From now on it dies there. */
  arm (point: DeathPoint): Promise<void>
  kill (signal: NodeJS.Signals): Promise<void>
}

/** @param program of one file, which calls `dieAtItsPoint` and then sends its address */
export async function startDoomed (t: Test, program: string, home: string): Promise<DoomedGateway> {
  const child = spawn(process.execPath, [program, home], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
  let log = ''
  child.stderr!.on('data', (chunk: Buffer) => { log += chunk.toString() })
  const gone = once(child, 'exit')
  t.teardown(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await gone
  })
  const says = (): Promise<string> => Promise.race([
    once(child, 'message').then(([message]) => String(message)),
    gone.then(() => { throw new Error(`the gateway ended: ${log}`) })
  ])
  const url = await says()
  return {
    url,
    gone,
    arm: async ({ type, message }) => {
      child.send([type, message])
      await says()
    },
    kill: async signal => {
      child.kill(signal)
      await gone
    }
  }
}

/** What runs with a home in its command line. */
export async function processesOf (home: string): Promise<ReadonlyArray<{ readonly pid: number, readonly args: string }>> {
  const all = process.platform === 'linux' ? fromProc() : await fromPs()
  return all.filter(({ args }) => args.includes(home))
}

type Processes = Array<{ readonly pid: number, readonly args: string }>

/** Without a program: this is asked many times a second. The command line of what has ended is empty. */
function fromProc (): Processes {
  return readdirSync('/proc').filter(name => /^\d+$/.test(name)).flatMap(name => {
    try {
      return [{ pid: Number(name), args: readFileSync(`/proc/${name}/cmdline`, 'utf8').replace(/\0$/, '').replaceAll('\0', ' ') }]
    } catch {
      return []
    }
  })
}

async function fromPs (): Promise<Processes> {
  const { stdout } = await run('ps', ['-eo', 'pid=,stat=,args='], { maxBuffer: 16 * 1024 * 1024 })
  return stdout.split('\n').flatMap(line => {
    const [, pid, stat, args = ''] = /^\s*(\d+)\s+(\S+)\s+(.*)$/.exec(line) ?? []
    return pid === undefined || stat!.startsWith('Z') ? [] : [{ pid: Number(pid), args }]
  })
}
