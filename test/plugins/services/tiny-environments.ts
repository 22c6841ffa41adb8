import { randomBytes } from 'node:crypto'
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { definePlugin, type AnyPlugin } from '../../../kernel/contract/index.js'
import { environmentsRef, runnersRef, type Environments } from '../../../plugins/api/services/ref.js'

type Install = Environments['install']

/**
 * Environments with one program, `tiny`, which no registry is asked for.
 * @param program its text, by the version that is wanted
 * @param before what is awaited before it is there
 * @param check what is awaited before anything can be brought
 */
export function tinyEnvironments (
  program: (version: string) => string, before: (...order: Parameters<Install>) => Promise<void> = () => Promise.resolve(),
  check: () => Promise<void> = () => Promise.resolve()
): AnyPlugin {
  return definePlugin({
    name: 'svc-environments',
    kind: 'service',
    apiVersion: 1,
    provides: [environmentsRef, runnersRef],
    register (ctx) {
      ctx.provide(runnersRef, { add: () => undefined })
      ctx.provide(environmentsRef, {
        check,
        async install (wanted, options) {
          const name = `env-${randomBytes(4).toString('hex')}`
          const bin = join(options.folder, name, 'node_modules/.bin')
          await mkdir(bin, { recursive: true })
          await before(wanted, options)
          await writeFile(join(bin, 'tiny'), program(wanted.npm!.version), { mode: 0o755 })
          return name
        },
        async sweep (folder, but) {
          const names = await readdir(folder).catch(() => [])
          for (const name of names) if (name.startsWith('env-') && name !== but) await rm(join(folder, name), { recursive: true })
        }
      })
    }
  })
}
