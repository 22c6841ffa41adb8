import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { run, type Finished } from '../support.js'

/** A home and packages beside it. */
export interface Sandbox {
  readonly home: string
  readonly modules: string
  readonly svcToml: () => string
  /** Writes a package folder and gives its path. */
  readonly pack: (name: string, more?: object, source?: string) => string
  readonly plugin: (...args: readonly string[]) => Promise<Finished>
}

const svc = { apiVersion: 1, kind: 'provider' }

export function sandbox (t: Test, toml = ''): Sandbox {
  const root = t.testdir({ home: { etc: { svc: { 'svc.toml': toml } } }, src: {} })
  const home = join(root, 'home')
  let packed = 0
  return {
    home,
    modules: join(home, 'var/lib/svc/plugins/node_modules'),
    svcToml: () => readFileSync(join(home, 'etc/svc/svc.toml'), 'utf8'),
    pack (name, more = {}, source = 'export default {}\n') {
      const folder = join(root, 'src', `p${packed++}`)
      mkdirSync(folder)
      writeFileSync(join(folder, 'index.js'), source)
      writeFileSync(join(folder, 'package.json'), JSON.stringify({
        name, version: '1.0.0', type: 'module', main: 'index.js', svc, peerDependencies: { 'svc-gateway': '>=0.1.0' },
        scripts: { prepack: 'touch ran', postinstall: 'touch ran' }, ...more
      }))
      return folder
    },
    plugin: (...args) => run(['plugin', ...args, '--home', home], { env: process.env as Record<string, string>, cwd: join(root, 'src') })
  }
}
