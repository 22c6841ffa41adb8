import { execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { sentenceFor } from '../../plugins/services/demo/sentence.js'
import { testEngine } from '../kernel/runtime/engines.js'
import { shippedProgram } from '../program.js'
import { root } from '../repository.js'
import { brought } from './support/clients.js'

t.setTimeout(900_000)

const CACHE = '/opt/npm-cache'
const TARBALL = '/opt/svc-gateway.tgz'
const run = promisify(execFile)

interface User {
  readonly name: string
  readonly home: string
  /** Where npm installs for this user. */
  readonly prefix: string
  readonly env: Readonly<Record<string, string>>
}

const users: readonly User[] = [
  { name: 'root', home: '/root', prefix: '/usr', env: {} },
  { name: 'ada', home: '/home/ada', prefix: '/home/ada/.local', env: { SVC_HOME: '/home/ada/.svc' } }
]

t.test('the packed gateway is installed, used and removed in a container that has nothing but Node and npm', async t => {
  const engine = await testEngine(t, 'docker')
  if (engine === null) return
  const env = { ...process.env, DOCKER_HOST: engine.host }
  const docker = async (...args: string[]): Promise<string> => (await run('docker', args, { env, maxBuffer: 64 * 1024 * 1024 })).stdout.trim()
  const folder = await mkdtemp(join(tmpdir(), 'svc-package-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  // npm would build, but runs no scripts here
  shippedProgram()
  const { stdout } = await run('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], { cwd: root })
  const tarball = join(folder, stdout.trim().split('\n').at(-1)!)
  const taken = await brought(t, 'newcomer.sh', tarball)
  if (taken === null) return

  const name = `svc-test-package-${randomBytes(4).toString('hex')}`
  t.teardown(() => docker('rm', '--force', name).catch(() => ''))
  await docker('run', '--detach', '--init', '--network', 'none', '--name', name, engine.nodeImage, 'sleep', '1800')
  await docker('exec', name, 'bash', '-euc', 'mkdir -p /usr/lib/node_modules; ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/bin/npm; useradd --create-home ada')
  for (const [from, to] of [[join(taken, 'npm'), '/usr/lib/node_modules/npm'], [join(taken, 'cache'), CACHE], [tarball, TARBALL]] as const) await docker('cp', from, `${name}:${to}`)
  t.comment(`Node ${await docker('exec', name, 'node', '--version')}, npm ${await docker('exec', name, 'npm', '--version')}`)

  const commands = readmeCommands(await readFile(join(root, 'README.md'), 'utf8'))
  for (const user of users) {
    await t.test(`as ${user.name}`, async t => {
      await docker('exec', name, 'chown', '--recursive', `${user.name}:`, CACHE)
      if (user.prefix !== '/usr') await docker(...as(user), name, 'npm', 'config', 'set', 'prefix', user.prefix)
      const before = await filesOf(docker, name, user)
      await story(t, user, commands, { docker, env, name })
      t.strictSame((await filesOf(docker, name, user)).filter(path => !before.includes(path)), [], 'nothing is left outside of the prefix')
    })
  }
})

interface Place {
  readonly docker: (...args: string[]) => Promise<string>
  readonly env: NodeJS.ProcessEnv
  readonly name: string
}

/** What the README says, in its words. */
async function story (t: Test, user: User, { install, serve, remove }: Commands, { docker, env, name }: Place): Promise<void> {
  const script = (text: string): Promise<string> => docker(...as(user), name, 'bash', '-euo', 'pipefail', '-c', `{ ${text}\n} 2>&1`)
  await script(install.replace(/\S+\.tgz/, TARBALL))
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }
  t.equal(await script('svc --version'), `svc ${version}`)

  const child = spawn('docker', [...as(user), name, 'bash', '-c', `echo "$$"; exec ${serve}`], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const closed = once(child, 'close') as Promise<[number | null]>
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => { errors += chunk.toString('utf8') })
  const lines: string[] = []
  for await (const line of createInterface({ input: child.stdout })) if (lines.push(line) > 1 && line === '' && lines.some(each => each.includes(' is ready at '))) break
  child.stdout.resume()
  t.match(lines[1], `svc ${version} is ready at http://127.0.0.1:8080`, errors)
  t.match(errors, /The embedded engine \S+ is installed/)
  t.match(JSON.parse(await script('curl --fail --silent --show-error http://127.0.0.1:8080/api/health')), { status: 'ok', version })
  t.match(await script('svc status'), new RegExp(`^svc ${version} at http://127\\.0\\.0\\.1:8080: ok[^]*agent`))
  t.equal(await script('svc chat Hello'), sentenceFor('svc'))
  t.match(await script('svc doctor'), /✓ node +Node[^]*✓ folders[^]*✓ gateway +answers/)

  await script(`kill -TERM ${lines[0]}`)
  t.equal((await closed)[0], 0, 'it stops when it is told to')
  // what a terminal would be asked for
  t.match(await script(`export SVC_FORCE=1; ${remove}`), /Everything is removed\.[^]*removed \d+ packages/)
}

function as ({ name, home, prefix, env }: User): string[] {
  const all = { HOME: home, PATH: `${prefix}/bin:/usr/bin:/bin`, npm_config_cache: CACHE, npm_config_offline: 'true', ...env }
  return ['exec', '--user', name, '--workdir', home, ...Object.entries(all).flatMap(([key, value]) => ['--env', `${key}=${value}`])]
}

/** All that the container holds, but for the files of the system, npm's cache and a prefix that is the user's own. */
async function filesOf (docker: Place['docker'], name: string, { home, prefix }: User): Promise<readonly string[]> {
  const outside = ['/proc', '/sys', '/dev', CACHE, ...prefix.startsWith(home) ? [prefix] : []]
  const found = await docker('exec', name, 'find', '/', '-xdev', '(', ...outside.flatMap((path, i) => [...i === 0 ? [] : ['-o'], '-path', path]), ')', '-prune', '-o', '-print')
  return found.split('\n').filter(path => path !== `${home}/.cache`)
}

interface Commands {
  readonly install: string
  readonly serve: string
  readonly remove: string
}

function readmeCommands (readme: string): Commands {
  const [, block = ''] = /Without a checkout[^]*?```sh\n([^]*?)```/.exec(readme) ?? []
  const [install = '', serve = '', remove = '', ...rest] = block.trim().split('\n').map(line => line.replace(/ +#.*$/, ''))
  if (!/^npm i -g \S+\.tgz$/.test(install) || !/^svc serve/.test(serve) || !/^svc uninstall/.test(remove) || rest.length > 0) throw new Error('the README installs the gateway in other words than the test knows')
  return { install, serve, remove }
}
