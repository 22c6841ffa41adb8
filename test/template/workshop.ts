import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { packageRoot } from '../../kernel/config/package-root.js'
import { reservePorts } from '../ports.js'
import { shippedProgram } from '../program.js'
import { cleanEnv, sh, startNode, type Env, type Running } from './shell.js'

/** What a newcomer has: the packed gateway, a copy of the template beside it, and its README. */
export interface Workshop {
  readonly folder: string
  /** The copy. */
  readonly plugin: string
  /** The gateway that was installed beside it. */
  readonly svc: string
  readonly env: Env
  /** The commands of the README, block by block. */
  readonly commands: Readonly<Record<'build' | 'add' | 'speak' | 'remove' | 'image', string>>
}

export interface LiveGateway extends Running {
  readonly url: string
  readonly env: Env
}

export async function openWorkshop (t: Test): Promise<Workshop> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-template-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const plugin = join(folder, 'svc-plugin-espeak')
  const gateway = join(folder, 'gateway')
  const template = join(packageRoot, 'plugin-template')
  // what somebody built in place does not count
  await cp(template, plugin, { recursive: true, filter: path => !/\/(node_modules|dist|package-lock\.json|[^/]+\.tgz)$/.test(path) })
  const env = cleanEnv({
    PATH: `${join(gateway, 'node_modules', '.bin')}:${process.env.PATH ?? ''}`,
    // the same packages as the checkout's: no look-ups, and no builds of optional native parts
    npm_config_prefer_offline: 'true',
    npm_config_ignore_scripts: 'true',
    npm_config_audit: 'false',
    npm_config_fund: 'false',
    npm_config_update_notifier: 'false'
  })
  await mkdir(gateway)
  // npm would build, but runs no scripts here
  shippedProgram()
  await sh(t, packageRoot, env, `npm pack --pack-destination '${folder}'`)
  await sh(t, gateway, env, `npm install '${folder}'/svc-gateway-*.tgz`)
  const [build, add, speak, remove, image, ...rest] = shellBlocks(await readFile(join(plugin, 'README.md'), 'utf8'))
  if (image === undefined || rest.length > 0) throw new Error('the README of the template has other blocks than the test knows')
  return {
    folder,
    plugin,
    svc: join(gateway, 'node_modules', 'svc-gateway', 'dist', 'lib', 'svc.cjs'),
    env,
    commands: { build: build!, add: add!, speak: speak!, remove: remove!, image }
  }
}

/** The installed gateway on a new home. `env` is for the commands at its side. */
export async function startGateway (t: Test, shop: Workshop, driver: string, more: Env = {}): Promise<LiveGateway> {
  const home = join(shop.folder, `home-${driver}`)
  await mkdir(join(home, 'etc', 'svc'), { recursive: true })
  await writeFile(join(home, 'etc', 'svc', 'svc.toml'), [
    '[runtime]', `driver = "${driver}"`, '[slots]', (await reservePorts()).toml
  ].join('\n'))
  const running = await startNode(t, [shop.svc, 'serve', '--home', home, '--port', '0', '--ready-json'], { ...shop.env, ...more })
  const { url } = JSON.parse(running.firstLine) as { url: string }
  return { ...running, url, env: { ...shop.env, ...more, SVC_HOME: home, SVC_API_URL: url } }
}

function shellBlocks (markdown: string): string[] {
  return [...markdown.matchAll(/^```sh\n([^]*?)^```$/gm)].map(([, block]) => block!)
}
