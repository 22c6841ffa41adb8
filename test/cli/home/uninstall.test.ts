import { chmodSync, cpSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { systemdUnit, sysusersFile } from '../../../cli/unit/gateway-unit.js'
import { polkitRule, switchTemplate } from '../../../cli/unit/unit-access.js'
import { openProcessRuntime } from '../../../kernel/runtime/process/process-runtime.js'
import { tinyProcess } from '../../../kernel/testing/tiny-engine.js'
import { FakeDocker, json } from '../../kernel/runtime/docker/fake-docker.js'
import { realClock, recordingLogger } from '../../kernel/runtime/support.js'
import { readOnly } from '../../mounts.js'
import { freePort } from '../../ports.js'
import { shippedProgram } from '../../program.js'
import { root as repository } from '../../repository.js'
import { FakeProcess, run, spawnSvc, type Finished } from '../support.js'

const INSTANCE = '11111111-2222-4333-8444-555555555555'
const unit = systemdUnit({ node: '/usr/bin/node', program: '/usr/lib/svc/launch.mjs', releases: '/usr/lib/svc', home: null, user: 'svc', groups: [], path: '/bin' })
const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined

interface Told {
  readonly mode: string
  readonly things: ReadonlyArray<{ readonly kind: string, readonly name: string, readonly outcome: string }>
  readonly kept: ReadonlyArray<{ readonly name: string, readonly why: string }>
}

interface Machine {
  readonly root: string
  /** All that is below it, links as links. */
  readonly files: () => readonly string[]
  readonly svc: (...args: string[]) => Promise<Finished>
}

/** All that is below a folder but folders; links are not followed. */
function filesIn (folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap(entry =>
    entry.isDirectory() ? filesIn(join(folder, entry.name)).map(name => join(entry.name, name)) : [entry.name])
}

function write (root: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
}

/** A machine as `svc service install` leaves it, with files of others beside those of the gateway. */
function machine (t: Test): Machine {
  const root = mkdtempSync(join(tmpdir(), 'svc-machine-'))
  t.teardown(() => rmSync(root, { recursive: true, force: true }))
  write(root, {
    'etc/systemd/system/svc-api.service': unit,
    'etc/systemd/system/svc-api.service.d/memory.conf': '[Service]\nMemoryMax=8G\n',
    'etc/systemd/system/other.service': '[Service]\n',
    'etc/sysusers.d/svc.conf': sysusersFile('svc'),
    'etc/passwd': 'root:x:0:0:root:/root:/bin/sh\nsvc:x:970:970:svc gateway:/var/lib/svc:/usr/sbin/nologin\nmine:x:1000:1000::/home/mine:/bin/sh\n',
    'etc/group': 'root:x:0:\nsvc:x:970:\nmine:x:1000:\n',
    'etc/shadow': 'root:*:1::::::\nsvc:!:1::::::\nmine:*:1::::::\n',
    'etc/systemd/system/svc-unit-enable@.service': switchTemplate('enable', '/bin/systemctl'),
    'etc/systemd/system/svc-unit-disable@.service': '[Service]\n',
    'etc/polkit-1/rules.d/50-svc-gateway.rules': polkitRule('svc', 'svc-api.service', []),
    'etc/polkit-1/rules.d/49-svc.rules': 'polkit.addRule(mine)\n',
    'etc/avahi/services/svc-addon-openwebui.service': '<service-group/>',
    'etc/avahi/services/svc.service': '<service-group/>',
    'usr/share/zsh/site-functions/_svc': '#compdef svc\n# completion of svc for zsh: svc completion zsh\n',
    'etc/bash_completion.d/svc': '# of another program\n',
    'usr/lib/svc/svc-1.0.0/package.json': '{ "name": "svc-gateway", "version": "1.0.0" }',
    'usr/lib/svc/svc-1.0.0/dist/lib/svc.cjs': '',
    'usr/lib/svc/svc-0.9.0.stale/half': '',
    'usr/lib/svc/launch.mjs': '',
    'usr/lib/svc/switch.json': '{}',
    'usr/lib/svc/kept-0123456789ab/0': 'a database',
    'etc/svc/svc.toml': '[runtime]\ndriver = "process"\n',
    'etc/svc/api.env': 'HF_TOKEN=x\n',
    'etc/svc/slots/agent.toml': '',
    'var/lib/svc/instance-id': `${INSTANCE}\n`,
    'var/lib/svc/svc.db': '',
    'var/lib/svc/models/big.gguf': 'weights',
    'outside/mine.gguf': 'weights',
    'usr/local/bin/keep': '',
    'root/.bashrc': 'alias ll="ls -l"\nsource <(svc completion bash)\n# source <(svc completion bash)\n',
    'home/mine/.zshrc': 'source <(svc completion zsh)  # of svc\nexport EDITOR=vi',
    'home/mine/.config/fish/config.fish': 'svc completion fish | source\n',
    'home/mine/.cache/svc/code/0123-x64-command/cli.cjs': 'compiled',
    'outside/profile': '. <(svc completion bash)\n'
  })
  chmodSync(join(root, 'home/mine/.zshrc'), 0o640)
  symlinkSync(join(root, 'outside/profile'), join(root, 'home/mine/.profile'))
  symlinkSync('svc-1.0.0', join(root, 'usr/lib/svc/current'))
  symlinkSync(join(root, 'usr/lib/svc/current/dist/lib/svc.cjs'), join(root, 'usr/local/bin/svc'))
  symlinkSync(join(root, 'outside'), join(root, 'var/lib/svc/models/linked'))
  symlinkSync(join(root, 'outside'), join(root, 'var/lib/svc/comfyui'))
  return {
    root,
    // userdel keeps the files that it changed
    files: () => filesIn(root).filter(path => !/^etc\/(passwd|group|shadow)-$/.test(path)).toSorted(),
    svc: (...args) => run(['uninstall', '--root', root, ...args], { env: { PATH: process.env.PATH!, HOME: join(root, 'root'), SUDO_USER: 'mine' } })
  }
}

const others = [
  'etc/avahi/services/svc.service', 'etc/bash_completion.d/svc', 'etc/group', 'etc/passwd', 'etc/polkit-1/rules.d/49-svc.rules', 'etc/shadow',
  'etc/systemd/system/other.service', 'etc/systemd/system/svc-unit-disable@.service', 'home/mine/.config/fish/config.fish', 'home/mine/.profile',
  'home/mine/.zshrc', 'outside/mine.gguf', 'outside/profile', 'root/.bashrc', 'usr/local/bin/keep'
]
const data = [
  'etc/svc/api.env', 'etc/svc/slots/agent.toml', 'etc/svc/svc.toml', 'etc/sysusers.d/svc.conf', 'var/lib/svc/comfyui', 'var/lib/svc/instance-id',
  'var/lib/svc/models/big.gguf', 'var/lib/svc/models/linked', 'var/lib/svc/svc.db'
]

t.test('svc uninstall lists what goes, removes that and no more, keeps configuration and data, and may run twice', async t => {
  const { root, files, svc } = machine(t)
  const before = files()
  const dry = await svc('--dry-run', '--json')
  t.equal(dry.code, 0, dry.stderr)
  t.strictSame(files(), before, 'a dry run changes nothing')
  const listed = (JSON.parse(dry.stdout) as Told).things
  t.ok(listed.every(({ outcome }) => outcome === 'listed'))
  const done = await svc()
  t.match(done, { code: 0, stdout: /Everything is removed\./ }, done.stderr)
  const gone = before.filter(path => !isThere(join(root, path)))
  t.strictSame(files(), [...others, ...data].toSorted(), 'only what is the gateway\'s is gone')
  for (const path of gone) t.ok(listed.some(({ name }) => join(root, path).startsWith(name)), `${path} was listed`)
  for (const { name } of listed) if (name.startsWith('/')) t.match(done.stdout, name, 'at the prompt, too')
  t.match(done.stdout, /This stays:[^]*bash_completion\.d\/svc: svc did not write it[^]*\/etc\/svc: --purge removes it/)
  t.notOk(existsSync(join(root, 'usr/lib/svc')))
  const text = (path: string): string => readFileSync(join(root, path), 'utf8')
  t.equal(text('root/.bashrc'), 'alias ll="ls -l"\n# source <(svc completion bash)\n', 'the line that loads the completion goes, and no other')
  t.equal(text('home/mine/.zshrc'), 'export EDITOR=vi', 'also of who called sudo')
  t.equal(lstatSync(join(root, 'home/mine/.zshrc')).mode & 0o777, 0o640)
  t.equal(text('home/mine/.config/fish/config.fish'), '')
  t.match(done.stdout, /home\/mine\/\.profile: it is a link; remove its line yourself: \. <\(svc completion bash\)/)
  t.equal(text('outside/profile'), '. <(svc completion bash)\n')
  t.match(await svc(), { code: 0, stdout: /There is nothing to remove\./ }, 'a second run is harmless')
  t.match((await svc('--help')).stdout.replaceAll(/\s+/g, ' '), /asks at a terminal; without one, as in a script, it proceeds/, 'that it did not ask here is said')
})

t.test('--purge takes configuration, data and the user too, follows no link, and leaves a folder that holds files of others', async t => {
  const { root, files, svc } = machine(t)
  const before = files()
  const refused = await svc('--purge')
  t.match(refused, { code: 1, stderr: /there is no terminal to confirm it at[^]*--force/ }, 'in a script it takes --force')
  t.strictSame(files(), before)
  t.match(await svc('--purge', '--keep-data'), { code: 2 })
  writeFileSync(join(root, 'etc/svc/notes.md'), 'mine')
  const { code, stdout, stderr } = await svc('--clean-slate', '-f')
  t.equal(code, 0, stderr)
  t.match(stdout, /etc\/svc\/notes\.md: it does not belong to the gateway/)
  t.match(stdout, /outside: \S*var\/lib\/svc\/comfyui is a link to it/)
  t.strictSame(files(), [...others, 'etc/svc/notes.md'].toSorted())
  t.notOk(existsSync(join(root, 'var/lib/svc')))
  t.equal(readFileSync(join(root, 'etc/passwd'), 'utf8'), 'root:x:0:0:root:/root:/bin/sh\nmine:x:1000:1000::/home/mine:/bin/sh\n')
  t.match(await svc('--purge', '-f'), { code: 0, stdout: /nothing to remove/ })
})

t.test('at a terminal a purge asks for the word DELETE; another answer keeps configuration and data, and Ctrl-C everything', async t => {
  for (const [word, left] of [['DELETE', others], ['delete', [...others, ...data]]] as const) {
    const { root, files } = machine(t)
    const asked = new FakeProcess({ tty: true, env: { SVC_FORCE: '0', PATH: process.env.PATH!, HOME: join(root, 'root'), SUDO_USER: 'mine' } })
    asked.stdin.end(`${word}\n`)
    const ended = await asked.run('uninstall', '--purge', '--root', root)
    t.match(ended, { code: 0, stderr: /Type DELETE to remove configuration and data too/ }, ended.stderr)
    t.strictSame(files(), [...left].toSorted(), word)
  }
  const { root, files } = machine(t)
  const before = files()
  const asked = new FakeProcess({ tty: true, env: { PATH: process.env.PATH!, HOME: join(root, 'root'), SUDO_USER: 'mine' } })
  const ended = asked.run('uninstall', '--purge', '--root', root)
  await asked.shows('stderr', 'Type DELETE')
  asked.send('SIGINT')
  t.match(await ended, { code: 130 })
  t.strictSame(files(), before)
  const forced = new FakeProcess({ env: { SVC_FORCE: '1', PATH: process.env.PATH!, HOME: join(root, 'root'), SUDO_USER: 'mine' } })
  t.match(await forced.run('uninstall', '--purge', '--root', root), { code: 0 })
  t.notOk(existsSync(join(root, 'etc/svc')), 'SVC_FORCE=1 is --force')
})

t.test('a unit that svc did not write stays, and what cannot be removed is told and ends it with 1', async t => {
  const { root, svc } = machine(t)
  writeFileSync(join(root, 'etc/systemd/system/svc-api.service'), '[Service]\nExecStart=/opt/mine\n')
  writeFileSync(join(root, 'usr/lib/svc/README'), 'mine')
  const release = readOnly(t, join(root, 'var/lib/svc/models'))
  if (release === null) return void t.comment('SKIPPED: nothing may be mounted here')
  const { code, stdout, stderr } = await svc('--purge', '--force', '--json')
  t.match({ code, stderr }, { code: 1, stderr: /2 of \d+ could not be removed; fix the cause and run it again[^]*models: .*EROFS/ })
  const told = JSON.parse(stdout) as Told
  const left = told.things.filter(({ outcome }) => outcome !== 'removed').map(({ name }) => name.slice(root.length))
  t.strictSame(left, ['/var/lib/svc/models', '/var/lib/svc'], 'it went on')
  t.equal(told.mode, 'purge')
  t.ok(told.kept.some(({ name }) => name.endsWith('usr/lib/svc/README')))
  t.ok(isThere(join(root, 'etc/systemd/system/svc-api.service')))
  t.strictSame(readdirSync(join(root, 'usr/lib/svc')), ['README'])
  release()
  t.match(await svc('--purge', '--force'), { code: 0, stdout: /Everything is removed/ }, 'run again, it does what was left')
  t.notOk(isThere(join(root, 'var/lib/svc')))
})

t.test('containers and images of the home go, those of others stay; killed in the middle it is finished by the next run', async t => {
  const { root, files, svc } = machine(t)
  const docker = await FakeDocker.start()
  t.teardown(() => docker.close())
  write(root, {
    'var/lib/svc/engine-hosts.json': JSON.stringify({ version: 1, used: { driver: 'docker', endpoint: docker.host }, former: [] }),
    'etc/svc/manifest.json': JSON.stringify({ toolbox_images: { mine: { tag: 'registry.example/mine:1' } } })
  })
  const ours = docker.add('a', { 'svc.instance': INSTANCE, 'svc.slot': 'agent' })
  docker.add('b', { 'svc.instance': 'of another home' })
  const images = new Set(['registry.example/mine:1', 'registry.example/other:1'])
  for (const name of images) {
    docker.routes.set(`GET /images/${name}/json`, (_request, response) => json(response, images.has(name) ? 200 : 404, { RepoDigests: [] }))
    docker.routes.set(`DELETE /images/${name}`, (_request, response) => {
      images.delete(name)
      json(response, 200, [])
    })
  }
  docker.routes.set(`POST /containers/${ours.id}/stop`, (_request, response) => {
    ours.status = 'exited'
    json(response, 204, null)
  })
  const removal = `DELETE /containers/${ours.id}`
  const asked = new Promise<void>(resolve => docker.routes.set(removal, () => resolve()))
  const { child, finished } = spawnSvc(['uninstall', '--purge', '--force', '--root', root], { HOME: join(root, 'root') })
  const ended = finished.then(({ code, stderr }) => { throw new Error(`it ended with ${code} before it removed the container: ${stderr}`) })
  await Promise.race([asked, ended])
  child.kill('SIGKILL')
  await finished
  t.ok(files().includes('var/lib/svc/instance-id'), 'what says which containers are ours is still there')
  docker.routes.set(removal, (_request, response) => {
    docker.containers.delete(ours.id)
    json(response, 204, null)
  })
  const again = await svc('--purge', '--force')
  t.match(again, { code: 0, stdout: /engine +fake \(fake\)[^]*image +registry\.example\/mine:1/ }, again.stdout + again.stderr)
  t.strictSame([...docker.containers.values()].map(({ labels }) => labels['svc.instance']), ['of another home'])
  t.strictSame([...images], ['registry.example/other:1'])
  t.strictSame(files(), others)
})

t.test('a program that the gateway left running is ended first, and then all else goes', async t => {
  const root = mkdtempSync(join(tmpdir(), 'svc-left-'))
  t.teardown(() => rmSync(root, { recursive: true, force: true }))
  write(root, { 'var/lib/svc/instance-id': INSTANCE, 'etc/svc/svc.toml': '' })
  const runtime = await openProcessRuntime({ stateDir: join(root, 'var/lib/svc'), env: process.env, clock: realClock, log: recordingLogger(), reason: 'test' })
  const { signal } = new AbortController()
  const id = await runtime.create(tinyProcess({ name: 'left', port: await freePort(), labels: {}, env: {} }), signal)
  await runtime.start(id, signal)
  await runtime.close()
  t.match(await spawnSvc(['uninstall', '--purge', '--force', '--home', root], { HOME: root }).finished, { code: 0, stdout: /engine +left[^]*Everything is removed/, stderr: /^$/ })
  t.notOk(isThere(root))
})

t.test('a user who removes a home of their own keeps nothing in the cache folder, and needs no root', async t => {
  const user = mkdtempSync(join(tmpdir(), 'svc-user-'))
  t.teardown(() => rmSync(user, { recursive: true, force: true }))
  write(user, { '.svc/etc/svc/svc.toml': '', '.cache/svc/code/0123-x64-command/cli.cjs': 'compiled', '.cache/other/kept': '' })
  const svc = (...args: string[]): Promise<Finished> => run(['uninstall', '--home', join(user, '.svc'), ...args], { env: { HOME: user } })
  t.match(await svc(), { code: 0, stdout: /This goes:\n {2}file +\S+\.cache\/svc\/code\nThis stays:\n {2}\S+\.svc\/etc\/svc: --purge/ })
  t.strictSame(filesIn(user).toSorted(), ['.cache/other/kept', '.svc/etc/svc/svc.toml'])
  t.notOk(isThere(join(user, '.cache/svc')))
  t.match(await svc('--purge', '--force'), { code: 0, stdout: /Everything is removed/ })
  t.strictSame(filesIn(user), ['.cache/other/kept'])
})

t.test('--dev removes the homes of a development tree and nothing of others; a gateway that runs there is a refusal, of which a dry run warns', async t => {
  const cwd = mkdtempSync(join(tmpdir(), 'svc-dev-'))
  t.teardown(() => rmSync(cwd, { recursive: true, force: true }))
  const home = join(cwd, '.svc/demo')
  write(home, { 'etc/svc/svc.toml': '[slots]\nautostart = false\n[runtime]\ndriver = "process"\n' })
  const { child, finished, firstLine } = spawnSvc(['serve', '--home', home, '--port', '0', '--ready-json'])
  await firstLine
  const svc = (...args: string[]): Promise<Finished> => run(['uninstall', '--dev', ...args], { cwd })
  t.match(await svc(), { code: 1, stderr: /a gateway runs on \S+\.svc\/demo \(process \d+\), so nothing is removed\nStop it first/ })
  t.match(await svc('--dry-run'), { code: 0, stdout: /dry run/, stderr: /^Warning: a gateway runs on \S+\.svc\/demo \(process \d+\), so nothing is removed\nStop it first/ }, 'a dry run lists all the same')
  child.kill('SIGTERM')
  await finished
  t.match(await svc('--keep-data'), { code: 0, stdout: /There is nothing to remove/ })
  write(cwd, { '.svc/notes.md': 'mine' })
  const dry = await svc('--dry-run', '--json')
  t.strictSame((JSON.parse(dry.stdout) as Told).kept, [], 'it knows all that a gateway writes')
  const done = await svc()
  t.match(done, { code: 0, stdout: /This is removed from \S+\.svc:/ }, done.stdout + done.stderr)
  t.strictSame(readdirSync(cwd, { recursive: true }), ['.svc', '.svc/notes.md'])
  rmSync(join(cwd, '.svc/notes.md'))
  write(home, { 'var/lib/svc/instance-id': INSTANCE })
  t.match(await svc('--home', join(cwd, '.svc')), { code: 0 })
  t.strictSame(readdirSync(cwd), [], 'a folder that is empty goes')
})

t.test('a release removes the tree that it runs from, and an npm installation or a checkout says what takes it away', async t => {
  const { root, files } = machine(t)
  const tree = join(root, 'usr/lib/svc/svc-1.0.0')
  cpSync(dirname(shippedProgram()), join(tree, 'dist/lib'), { recursive: true, filter: path => !path.endsWith('.map') })
  cpSync(join(repository, 'package.json'), join(tree, 'package.json'))
  symlinkSync(join(repository, 'node_modules'), join(root, 'node_modules'))
  const { finished } = spawnSvc(['uninstall', '--root', root, '--force'], { HOME: join(root, 'root'), SUDO_USER: 'mine' }, join(tree, 'dist/lib/svc.cjs'))
  t.match(await finished, { code: 0, stderr: /^$/ })
  t.strictSame(files().filter(path => path !== 'node_modules'), [...others, ...data].toSorted())
  const home = join(root, 'elsewhere')
  t.match(await run(['uninstall', '--home', home]), { code: 0, stdout: /it is a checkout or was unpacked manually: delete it yourself/ })
})
