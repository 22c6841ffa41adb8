import { statfs } from 'node:fs/promises'
import type { CleanText } from 'svc-gateway/plugin'
import { servicesError } from './errors.js'
import { findNpm, installNpm, noNpm } from './npm-env.js'
import { findPython, installPython, noPython, sweepEnvironments } from './python-env.js'
import type { Environments } from './ref.js'

export interface EnvironmentDeps {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clean: CleanText
  readonly downloads: boolean
}

/** Beside what is installed: what is unpacked on the way. */
const ROOM = 1.3

/** Packages of registries, each in a folder of its own. */
export function createEnvironments ({ env, clean, downloads }: EnvironmentDeps): Environments {
  return {
    async check ({ npm, python }, folder) {
      const { package: name, bytes } = npm ?? python!
      const cannot = (why: string): Error => servicesError('services.cannot_install', why)
      if (!downloads) throw cannot('downloads from registries are disabled: `downloads` is off in [plugins.config.api-services]')
      if (npm !== undefined && await findNpm(env) === null) throw noNpm(npm)
      if (python !== undefined && await findPython(python, env) === null) throw noPython(python)
      const { bavail, bsize } = await statfs(folder)
      const needed = (bytes ?? 0) * ROOM
      if (bavail * bsize < needed) {
        throw cannot(`${name} needs ${gigabytes(needed)} GB on the disk of ${folder}, and ${gigabytes(bavail * bsize)} GB are free`)
      }
    },
    install: ({ npm, python }, options) => npm !== undefined
      ? installNpm(npm, { ...options, env, clean })
      : installPython(python!, { ...options, env, clean }),
    sweep: sweepEnvironments
  }
}

function gigabytes (bytes: number): string {
  return (bytes / 1e9).toFixed(1)
}
