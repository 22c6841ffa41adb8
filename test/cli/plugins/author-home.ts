import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Test } from 'tap'
import { run, spawnSvc, type Finished } from '../support.js'

export type Files = Readonly<Record<string, string>>

/** A gateway of its own process and the folders of an author who works beside it. */
export interface AuthorHome {
  readonly home: string
  readonly url: string
  /** Runs a command on the home. */
  readonly onHome: (...args: readonly string[]) => Promise<Finished>
  /** Runs a command that asks the gateway. */
  readonly svc: (...args: readonly string[]) => Promise<Finished>
  /** Writes a package and gives its folder. */
  readonly pack: (name: string, files: Files, manifest?: object) => string
  /** Allows folders of packages and links them where packages are installed: what npm would take a second for, each. */
  readonly link: (...folders: readonly string[]) => void
  /** What the gateway has logged. */
  readonly log: () => string
}

export async function authorHome (t: Test, toml = ''): Promise<AuthorHome> {
  const root = t.testdir({ home: { etc: { svc: { 'svc.toml': toml } } }, src: {} })
  const home = join(root, 'home')
  const options = { env: process.env as Record<string, string>, cwd: join(root, 'src') }
  const gateway = spawnSvc(['serve', '--ready-json', '--port', '0', '--stop-engines', '--home', home])
  let log = ''
  gateway.child.stderr?.on('data', (chunk: Buffer) => { log += chunk.toString('utf8') })
  t.teardown(async () => {
    gateway.child.kill('SIGTERM')
    await gateway.finished
  })
  const { url } = JSON.parse(await gateway.firstLine) as { url: string }
  return {
    home,
    url,
    onHome: (...args) => run([...args, '--home', home], options),
    svc: (...args) => run([...args, '--url', url], options),
    pack (name, files, manifest = {}) {
      const folder = join(root, 'src', name)
      const all: Files = { 'package.json': JSON.stringify({ name, version: '1.0.0', type: 'module', exports: './index.js', svc: { apiVersion: 1, kind: 'routes' }, ...manifest }), ...files }
      for (const [path, text] of Object.entries(all)) {
        mkdirSync(dirname(join(folder, path)), { recursive: true })
        writeFileSync(join(folder, path), text)
      }
      return folder
    },
    link (...folders) {
      const modules = join(home, 'var/lib/svc/plugins/node_modules')
      mkdirSync(modules, { recursive: true })
      for (const folder of folders) symlinkSync(folder, join(modules, basename(folder)))
      const names = folders.map(folder => `"${basename(folder)}", `).join('')
      const svcToml = join(home, 'etc/svc/svc.toml')
      const text = readFileSync(svcToml, 'utf8')
      writeFileSync(svcToml, text.includes('allow = [') ? text.replace('allow = [', `allow = [${names}`) : `${text}[plugins]\nallow = [${names}]\n`)
    },
    log: () => log
  }
}

/** An engine without code, as TOML. */
export function descriptor (name: string, more = '', process = '["./engine.mjs", "{port}"]'): string {
  return `name = "${name}"\napiVersion = 1\nprocess = ${process}\ndevices = ["cpu"]\nslot_types = ["llm"]\nneeds_model = false\n${more}\n` +
    '[health]\npath = "/health"\n[surfaces.chat]\npath = "/v1/chat/completions"\n'
}

export const described = { svc: { apiVersion: 1, kind: 'provider', descriptor: './engine.toml' } }
