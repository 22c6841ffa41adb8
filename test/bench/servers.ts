import { execFileSync, fork, spawn, type ChildProcess, type StdioOptions } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chatAnswer } from '../../kernel/testing/index.js'
import { freePort } from '../ports.js'
import { shippedProgram } from '../program.js'
import { processUse } from './process-use.js'

export interface BenchServer {
  readonly origin: string
  readonly port: number
  readonly ready: Readonly<Record<string, unknown>>
  /** Resident memory in bytes, after a collection where the server can. */
  memory (): Promise<number>
  /** Time of the processor that it has used, in milliseconds; 0 where the server cannot tell. */
  cpuMs (): Promise<number>
  stop (): Promise<void>
}

export interface BenchProgram extends BenchServer {
  /** What it answers to a message. One at a time. */
  ask<T> (what: string): Promise<T>
}

/** Starts a program of this folder and waits for its line of JSON. */
export function startProgram (name: string, args: readonly string[]): Promise<BenchProgram> {
  return startProgramOf(fileURLToPath(new URL('.', import.meta.url)), name, args)
}

/** The same of another build. */
export function startProgramOf (folder: string, name: string, args: readonly string[]): Promise<BenchProgram> {
  const child = fork(join(folder, `${name}.js`), [...args], { stdio: STDIO, execArgv: ['--expose-gc'] })
  return programOf(child, ready => ready.port as number, () => child.disconnect())
}

/** The gateway as it ships, at a home that is there. `module` is loaded before it, and answers to messages. */
export function startShipped (home: string, module: URL): Promise<BenchProgram> {
  // behind the program's first steps: what these settle of V8 depends on how little there is before them
  const later = join(home, 'later.cjs')
  writeFileSync(later, `setImmediate(() => import(${JSON.stringify(module.href)}))`)
  const child = fork(shippedProgram(), ['serve', '--home', home, '--port', '0', '--ready-json'], { stdio: STDIO, execArgv: ['--require', later] })
  return programOf(child, ready => Number(new URL(ready.url as string).port), () => { child.kill('SIGTERM') })
}

const STDIO: StdioOptions = ['ignore', 'pipe', 'inherit', 'ipc']

async function programOf (
  child: ChildProcess, portOf: (ready: Readonly<Record<string, unknown>>) => number, end: () => void
): Promise<BenchProgram> {
  const [line] = await once(child.stdout!, 'data') as [Buffer]
  const ready = JSON.parse(line.toString()) as Record<string, unknown>
  const port = portOf(ready)
  const ask = async <T>(what: string): Promise<T> => {
    child.send(what)
    const [answer] = await once(child, 'message') as [T]
    return answer
  }
  const facts = (what: 'memory' | 'cpu'): Promise<{ rss: number, cpu: NodeJS.CpuUsage }> => ask(what)
  return {
    origin: `http://127.0.0.1:${port}`,
    port,
    ready,
    ask,
    memory: async () => (await facts('memory')).rss,
    cpuMs: async () => {
      const { cpu } = await facts('cpu')
      return (cpu.user + cpu.system) / 1000
    },
    stop: () => ended(child, end)
  }
}

export function hasNginx (): boolean {
  try {
    execFileSync('nginx', ['-v'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** The engine stand-in of this folder, on a port that is put in the place of `{port}`. */
export function upstreamEngine (): readonly string[] {
  return [process.execPath, fileURLToPath(new URL('upstream.js', import.meta.url)), '{port}']
}

/** As `startNginx` with a fixed answer, as a command. Writes what it needs below `folder`. */
export function nginxEngine (folder: string, program: string): readonly string[] {
  const template = join(folder, 'engine.conf')
  writeFileSync(template, nginxConfig('PORT', folder, null))
  return ['sh', '-c', `sed "s/PORT/$0/" ${template} > ${folder}/$0.conf && exec ${program} -c ${folder}/$0.conf -p ${folder} -e ${folder}/error.log`, '{port}']
}

function nginxConfig (port: number | string, folder: string, target: string | null): string {
  const body = chatAnswer('x'.repeat(400)).replaceAll('\'', '')
  const location = target === null
    ? `default_type application/json; return 200 '${body}';`
    : 'proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;'
  return `
daemon off; worker_processes 1; pid ${folder}/pid; error_log ${folder}/error.log crit;
events { worker_connections 4096; }
http {
  access_log off; keepalive_requests 100000000; client_max_body_size 0;
  client_body_temp_path ${folder}/b; proxy_temp_path ${folder}/p; fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  ${target === null ? '' : `upstream up { server ${new URL(target).host}; keepalive 256; }`}
  server { listen 127.0.0.1:${port} backlog=4096; location / { ${location} } }
}`
}

/** nginx with one worker: a fixed answer, or a proxy to `target`. */
export async function startNginx (target: string | null, program = 'nginx'): Promise<BenchServer> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-bench-nginx-'))
  const port = await freePort()
  writeFileSync(join(folder, 'nginx.conf'), nginxConfig(port, folder, target))
  const child = spawn(program, ['-c', join(folder, 'nginx.conf'), '-p', folder, '-e', join(folder, 'error.log')], { stdio: 'ignore' })
  const origin = `http://127.0.0.1:${port}`
  for (let i = 0; i < 200 && !await fetch(`${origin}/health`).then(() => true, () => false); i++) {
    await new Promise(resolve => { setTimeout(resolve, 10) })
  }
  return {
    origin,
    port,
    ready: {},
    memory: () => Promise.resolve(processUse(child.pid!).rss),
    cpuMs: () => Promise.resolve(processUse(child.pid!).cpuMs),
    stop: async () => {
      await ended(child, () => { child.kill('SIGTERM') })
      rmSync(folder, { recursive: true, force: true })
    }
  }
}

export async function ended (child: ChildProcess, ask: () => void): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = once(child, 'exit')
  ask()
  const timer = setTimeout(() => child.kill('SIGKILL'), 10_000)
  await exit
  clearTimeout(timer)
}
