import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { parseToml } from '../../../kernel/config/toml/toml-file.js'
import { createFakeProviderPlugin, createTestGateway, FakeEngineRuntime } from '../../../kernel/testing/index.js'
import { apiOf } from '../../plugins/api/support.js'
import { run, spawnSvc, type Finished } from '../support.js'

const api = apiOf('api-settings', 'api-slots', 'api-status')

const CPU = 'device = "cpu"\n'

function homeOf (t: Test, files: Readonly<Record<string, string>>): string {
  const home = t.testdir({ tmp: {} })
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(home, 'etc/svc', path)), { recursive: true })
    writeFileSync(join(home, 'etc/svc', path), text)
  }
  return home
}

/** `$0` is the copy. */
const env = (home: string, script: string) => ({ TMPDIR: join(home, 'tmp'), EDITOR: `sh -c '${script}'` })

function edit (home: string, file: string, script: string): Promise<Finished> {
  mkdirSync(join(home, 'tmp'), { recursive: true })
  return run(['config', 'edit', file, '--home', home], { env: env(home, script) })
}

const read = (home: string, file: string): string => readFileSync(join(home, 'etc/svc', file), 'utf8')

t.test('every file that operators write, from nothing', async t => {
  const home = homeOf(t, {})
  const written: ReadonlyArray<readonly [word: string, file: string, text: string, shown: RegExp]> = [
    ['slots/agent', 'slots/agent.toml', 'device = "cpu"', /^# Slot agent\..*\n\n# What the slot serves\n# type = "llm"\n[^]*\n# \[model\]\n/],
    ['agents/hermes', 'agents/hermes.toml', '[agent]\nname = "hermes"', /^# What agent hermes may call\..*\n\n# schema_version = 1\n/],
    ['upstreams.toml', 'upstreams.toml', '[[upstream]]\nname = "up"\nurl = "http://127.0.0.1:9/v1"', /# \[\[upstream\]\]\n# name =\n[^]*# retries = 0\n/],
    ['providers', 'providers.toml', '[[provider]]\ncatalog_id = "openai"', /# \[\[provider\]\]\n# catalog_id =\n/],
    ['profiles', 'profiles.toml', '[profile.mine]\nimage = "cpu"\ndevice_class = "cpu"', /# \[profile\.my-profile\]\n[^]*# image =\n[^]*# device_class = "gpu"\n/],
    ['stacks', 'stacks.toml', '[stack.mine]\nname = "Mine"', /# \[stack\.my-stack\]\n# name =\n/],
    ['capabilities', 'capabilities.toml', 'schema_version = 2\n[selections.embed.embed]\nenabled = false', /# \[selections\.embed\.embed\]\n[^]*# enabled = false\n/]
  ]
  for (const [word, file, text, shown] of written) {
    const seen = join(home, 'tmp', 'seen')
    const { code, stdout, stderr } = await edit(home, word, `cp "$0" "${seen}"; printf "%s\\n" "${text.replaceAll('"', '\\"')}" >> "$0"`)
    t.match({ code, stderr }, { code: 0, stderr: /^$/ }, word)
    t.match(stdout, `${join(home, 'etc/svc', file)} is saved.`)
    t.match(readFileSync(seen, 'utf8'), shown, word)
    t.same(parseToml(read(home, file)), parseToml(text), 'what it began with says nothing')
    t.match(await edit(home, word, 'true'), { code: 0, stdout: 'Nothing was changed.\n' })
  }
  t.same(readdirSync(join(home, 'tmp')), ['seen'])
})

t.test('what is edited is read as a gateway reads it: with the names and words of providers', async t => {
  const home = homeOf(t, {})
  const write = (file: string, text: string): Promise<Finished> => edit(home, file, `printf "${text.replaceAll('"', '\\"')}\\n" > "$0"`)
  const selection = (word: string): string => `schema_version = 1\\n[selections.voice.tts]\\nbackend = "${word}"`
  t.match(await write('capabilities', selection('kokoro')), { code: 0, stdout: /is saved/ })
  t.match(await write('capabilities', selection('kokoros')), { code: 1, stderr: /device must be one of/ })
  t.match(await write('slots/a', 'backend = "kokoros"'), { code: 1, stderr: /backend must be one of .*did you mean kokoro\?/ })
  t.match(await write('slots/a', 'backend = "kokoro"'), { code: 0, stdout: /is saved/ })
  t.match(await write('profiles', '[profile.rocm]\\nimage = "cpu"'), { code: 1, stderr: /is a built-in profile/ })
  t.match(await write('stacks', '[stack.saber]\\nname = "Mine"'), { code: 1, stderr: /is a built-in stack/ })
})

t.test('a word that is no file', async t => {
  const home = homeOf(t, {})
  for (const word of ['hardware', 'slots/../svc', 'slots/', 'agents/../svc', 'agents/Hermes', '__proto__', 'constructor']) {
    t.match(await edit(home, word, 'true'), { code: 2, stderr: /is not a file that can be edited\n.*svc, upstreams, providers.*slots\/<name>/ }, word)
  }
  t.notOk(existsSync(join(home, 'etc')))
})

t.test('a draft that makes something wrong, in its own file or in another, stays a draft', async t => {
  const home = homeOf(t, {
    'profiles.toml': '[profile.mine]\nimage = "cpu"\ndevice_class = "cpu"\n',
    'slots/one.toml': `${CPU}port = 8085\nprofile = "mine"\n`,
    'slots/two.toml': `${CPU}port = 8086\n`
  })
  const clash = await spawnSvc(['config', 'edit', 'slots/two', '--home', home], env(home, 'sed -i s/8086/8085/ "$0"')).finished
  t.match(clash, { code: 1, stderr: /^slots\/two\.toml is not valid:\n {2}slots\/one\.toml: port: .*\n {2}port: port 8085 belongs to slot 'one'.*\[slot\.port_conflict\]\n/ })
  t.match(clash.stderr, /slots\/two\.toml is unchanged/)
  t.equal(read(home, 'slots/two.toml'), `${CPU}port = 8086\n`)
  const draft = /Your edit is in (\S+)/.exec(clash.stderr)![1]!
  t.equal(readFileSync(draft, 'utf8'), `${CPU}port = 8085\n`)
  const orphan = await edit(home, 'profiles', ': > "$0"')
  t.match(orphan, { code: 1, stderr: /profiles\.toml is not valid:\n {2}slots\/one\.toml: profile: no such profile: 'mine'/ })
  t.match(read(home, 'profiles.toml'), 'profile.mine')
  t.match(await edit(home, 'agents/hermes', 'printf "[agent]\\nname = \\"pi\\"\\n" > "$0"'), { code: 1, stderr: /agents\/hermes\.toml is not valid:\n {2}agent\.name must be hermes/ })
  t.match(await edit(home, 'slots/two', 'echo "device = 5" > "$0"'), { code: 1, stderr: /slots\/two\.toml is not valid:\n {2}device must be one of/ })
})

t.test('what was wrong before stops nobody, and warnings are told', async t => {
  const home = homeOf(t, { 'slots/one.toml': `${CPU}model = "unheard"\n`, 'slots/two.toml': `${CPU}profile = "absent"\n` })
  const saved = await edit(home, 'slots/one', 'echo "workers = 2" >> "$0"')
  t.match(saved, { code: 0, stdout: /slots\/one\.toml is saved\./, stderr: /^Worth a look:\n {2}model\.default: model 'unheard'/ })
})

t.test('a gateway that runs takes it, and the command says so', async t => {
  const gateway = await api(t)
  const { code, stdout, stderr } = await edit(gateway.home, 'slots/agent', 'sed -i "1i idle_timeout_s = 77" "$0"')
  t.equal(code, 0, stderr)
  t.match(stdout, /agent\.toml is saved\.\nThe gateway has read its configuration again\./)
  t.match((await gateway.call('GET', '/api/slots/agent')).json, { idle_timeout_s: 77 })
})

t.test('a gateway that does not take it', async t => {
  const runtime = new FakeEngineRuntime()
  const gateway = await createTestGateway({ runtime, plugins: [createFakeProviderPlugin()], files: { 'etc/svc/slots/agent.toml': CPU } })
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
  })
  const { code, stdout, stderr } = await edit(gateway.home, 'slots/agent', 'echo "workers = 2" >> "$0"')
  t.equal(code, 1)
  t.match(stdout, 'is saved.')
  t.match(stderr, /the gateway at http:\S+ did not accept it\n.*svc config reload --url/)
  t.match(read(gateway.home, 'slots/agent.toml'), 'workers = 2')
})
