import { spawn, type ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { pack as packTar } from 'tar-stream'
import type { Test } from 'tap'
import { buildFor } from '../../plugins/providers/llm-server/ref.js'
import { shippedProgram } from '../program.js'
import { root } from '../repository.js'
import type { Finished } from './support.js'

/** Packages that are in a checkout and not in an installation from npm. */
const CHECKOUT_ONLY = ['node-llama-cpp', '@node-llama-cpp']

const { peerDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { peerDependencies: Record<string, string> }

/** Of the library, as `svc engine install` asks for it. */
export const version = peerDependencies['node-llama-cpp']!.replace('^', '')
export const build = buildFor(process.platform, process.arch, null)!

/** Libraries as far as an installation looks at them: one that loads, and one that this machine cannot run. */
export const library = 'export async function getLlama () { return {} }\n'
export const brokenLibrary = 'export async function getLlama () { throw new Error("Illegal instruction") }\n'

export interface InstalledCopy {
  /** The command line, under the name that npm gives it on PATH. */
  readonly bin: string
  readonly folder: string
}

/** This build as npm installs it: without the library of the embedded engine, and outside of the checkout that has it. */
export function installedCopy (t: Test): InstalledCopy {
  const prefix = mkdtempSync(join(tmpdir(), 'svc-installed-'))
  t.teardown(() => rmSync(prefix, { recursive: true, force: true }))
  const folder = join(prefix, 'lib/node_modules/svc-gateway')
  const program = shippedProgram()
  cpSync(dirname(program), join(folder, 'dist/lib'), { recursive: true, filter: path => !path.endsWith('.map') })
  cpSync(join(root, 'package.json'), join(folder, 'package.json'))
  const modules = join(folder, 'node_modules')
  mkdirSync(modules)
  for (const name of readdirSync(join(root, 'node_modules'))) {
    if (!name.startsWith('.') && !CHECKOUT_ONLY.includes(name)) symlinkSync(join(root, 'node_modules', name), join(modules, name))
  }
  mkdirSync(join(prefix, 'bin'))
  const bin = join(prefix, 'bin/svc')
  symlinkSync(join(folder, 'dist/lib/svc.cjs'), bin)
  return { bin, folder }
}

/** An engine as `svc engine install` leaves it, whose library is the one of this checkout. */
export function borrowedEngine (home: string): void {
  const folder = join(home, 'var/lib/svc/engines/embedded/node_modules')
  mkdirSync(folder, { recursive: true })
  for (const name of CHECKOUT_ONLY) symlinkSync(join(root, 'node_modules', name), join(folder, name))
}

export interface FakeRegistry {
  readonly url: string
  /** The next download of this package is not answered until the function is called. */
  hold (name: string): { readonly asked: Promise<void>, readonly release: () => void }
  readonly downloads: string[]
}

/** A registry of npm packages of one version, each with its files. */
export async function fakeRegistry (
  t: Test, packages: Readonly<Record<string, Readonly<Record<string, string>>>>, version: string
): Promise<FakeRegistry> {
  const tarballs = new Map<string, Buffer>()
  for (const [name, files] of Object.entries(packages)) tarballs.set(name, await tarballOf(name, version, files))
  const held = new Map<string, { asked: () => void, released: Promise<void> }>()
  const downloads: string[] = []
  const server = createServer((request, response) => { void serve(decodeURIComponent(request.url ?? ''), response) })
  async function serve (path: string, response: ServerResponse): Promise<void> {
    const [, file] = /^\/-\/(.+)\.tgz$/.exec(path) ?? []
    const name = file ?? path.slice(1)
    const tarball = tarballs.get(name)
    if (tarball === undefined) return void response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":"not found"}')
    if (file === undefined) return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(about(name, tarball)))
    const wait = held.get(name)
    held.delete(name)
    wait?.asked()
    await wait?.released
    downloads.push(name)
    response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(tarball)
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const about = (name: string, tarball: Buffer): object => ({
    'name': name,
    'dist-tags': { latest: version },
    'versions': {
      [version]: {
        name,
        version,
        dist: { tarball: `${url}/-/${encodeURIComponent(name)}.tgz`, integrity: `sha512-${createHash('sha512').update(tarball).digest('base64')}` }
      }
    }
  })
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url,
    downloads,
    hold (name) {
      let asked = (): void => {}
      let release = (): void => {}
      const asking = new Promise<void>(resolve => { asked = resolve })
      held.set(name, { asked, released: new Promise<void>(resolve => { release = resolve }) })
      return { asked: asking, release }
    }
  }
}

async function tarballOf (name: string, version: string, files: Readonly<Record<string, string>>): Promise<Buffer> {
  const pack = packTar()
  pack.entry({ name: 'package/package.json' }, JSON.stringify({ name, version, type: 'module' }))
  for (const [path, text] of Object.entries(files)) pack.entry({ name: `package/${path}` }, text)
  pack.finalize()
  const chunks: Buffer[] = []
  for await (const chunk of pack) chunks.push(chunk as Buffer)
  return gzipSync(Buffer.concat(chunks))
}

export interface Running {
  readonly child: ChildProcess
  readonly finished: Promise<Finished>
  /** What the pattern finds on standard output, once it is there. */
  line (pattern: RegExp): Promise<string>
}

export interface Machine {
  readonly home: string
  readonly engines: string
  svc (...args: readonly string[]): Promise<Finished>
  start (...args: readonly string[]): Running
}

/** Makes homes on a machine without containers and llama-server, for this gateway as npm installs it. */
export function machineOf (copy: InstalledCopy): (t: Test, registry?: FakeRegistry | null) => Machine {
  return (t, registry = null) => machine(t, copy, registry)
}

function machine (t: Test, copy: InstalledCopy, registry: FakeRegistry | null): Machine {
  const home = t.testdir({ etc: { svc: { 'svc.toml': '[runtime]\ndriver = "process"\n' } }, var: { lib: { svc: {} } }, cache: {} })
  const foreign = /^(SVC_|NODE_OPTIONS|npm_|DOCKER_)/
  const clean = Object.fromEntries(Object.entries(process.env).filter(([name]) => !foreign.test(name)))
  const env = {
    ...clean, PATH: '/usr/bin:/bin', SVC_HOME: home, npm_config_cache: join(home, 'cache'),
    npm_config_registry: registry?.url ?? 'http://127.0.0.1:9', npm_config_fetch_retries: '0'
  }
  const start: Machine['start'] = (...args) => {
    const child = spawn(process.execPath, [copy.bin, ...args], { env, cwd: home, stdio: ['ignore', 'pipe', 'pipe'] })
    const out = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const) child[name].on('data', (chunk: Buffer) => { out[name] += chunk.toString('utf8') })
    const finished = once(child, 'close').then(([code]) => ({ code: code === null ? -1 : Number(code), ...out }))
    t.teardown(async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
      await finished
    })
    const line = async (pattern: RegExp): Promise<string> => {
      for (;;) {
        const match = pattern.exec(out.stdout)
        if (match !== null) return match[1] ?? match[0]
        await Promise.race([once(child.stdout, 'data'), finished.then(({ stderr }) => { throw new Error(`it ended: ${stderr}`) })])
      }
    }
    return { child, finished, line }
  }
  return { home, engines: join(home, 'var/lib/svc/engines'), start, svc: (...args) => start(...args).finished }
}
