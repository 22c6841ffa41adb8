import { execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, symlinkSync, utimesSync } from 'node:fs'
import * as fs from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { removeFile, sweepTempFiles, writeFileAtomic, type FileOps } from '../../../kernel/config/files/atomic-file.js'
import { resolvePaths } from '../../../kernel/config/paths.js'
import { livenessOf, ownIdentity, parseToken, uniqueToken } from '../../../kernel/config/files/process-identity.js'
import { secretCleaner } from '../../../kernel/config/load/secret-text.js'
import { parseSecretsEnv, removeSecretLines, setSecretLine } from '../../../kernel/config/load/secrets-env.js'
import { suggest } from '../../../kernel/contract/text/suggest.js'
import { parseToml, readToml } from '../../../kernel/config/toml/toml-file.js'

t.test('SVC_HOME, or else the system, decides where every file is', async t => {
  t.match(resolvePaths({}), { home: null, etc: '/etc/svc', state: '/var/lib/svc', models: '/var/lib/svc/models', slots: '/etc/svc/slots' })
  t.match(resolvePaths({ SVC_HOME: '/h' }), {
    home: '/h', etc: '/h/etc/svc', state: '/h/var/lib/svc', registry: '/h/var/lib/svc/registry/registry.toml', secretsEnv: '/h/etc/svc/api.env'
  })
  t.equal(resolvePaths({ SVC_HOME: 'rel' }).etc, join(process.cwd(), 'rel/etc/svc'), 'a relative home is made absolute')
  t.equal(resolvePaths({ SVC_HOME: '' }).home, null, 'empty is unset')
  t.match(resolvePaths({ SVC_HOME: '/h', SVC_MODEL_STORE: '/big' }), { models: '/big', state: '/h/var/lib/svc' })
  t.equal(resolvePaths({ SVC_HOME: '/h' }, { home: '/other' }).home, '/other')
})

t.test('what is wrong with a file that cannot be used', async t => {
  const folder = t.testdir({
    'good.toml': 'a = 1\n',
    'bom.toml': '\uFEFFa = 1\n',
    'latin.toml': Buffer.from([0x61, 0x3d, 0x22, 0xe9, 0x22]),
    'cut-string.toml': 'name = "agent"\nmodel = "qw',
    'cut-list.toml': 'a = 1\nextra_args = [\n  "--foo",\n',
    'cut-table.toml': '[mod',
    'no-quotes.toml': 'device = cpu\nport = 1\n',
    'twice.toml': 'a = 1\na = 2\n',
    'secret.toml': '[server]\nenv = { KEY = "hunter2, OTHER = 1 }\n',
    'folder.toml': {},
    'loop.toml': t.fixture('symlink', 'loop.toml')
  })
  execFileSync('mkfifo', [join(folder, 'pipe.toml')])
  const bad = async (name: string) => {
    const read = await readToml(join(folder, name), name)
    return read.status === 'bad' ? read.diagnostic : t.fail(`${name} is ${read.status}`)
  }
  t.match(await readToml(join(folder, 'good.toml'), 'good.toml'), { status: 'ok', data: { a: 1 } })
  t.match(await readToml(join(folder, 'bom.toml'), 'bom.toml'), { status: 'ok', data: { a: 1 } })
  t.same(await readToml(join(folder, 'none.toml'), 'none.toml'), { status: 'missing' })
  t.match(await bad('latin.toml'), { file: 'latin.toml', path: /^$/, message: /not valid UTF-8/ })
  t.match(await bad('cut-string.toml'), { line: 2, message: /unfinished string.*line 2.*truncated/ })
  t.match(await bad('cut-list.toml'), { message: /truncated/ })
  t.match(await bad('cut-table.toml'), { line: 1, message: /truncated/ })
  t.match(await bad('no-quotes.toml'), { line: 1, message: /text needs quotes/ })
  t.match(await bad('twice.toml'), { line: 2, message: /only once/ })
  t.match(await bad('folder.toml'), { message: /a folder/ })
  t.match(await bad('pipe.toml'), { message: /not a regular file/ })
  t.match(await bad('loop.toml'), { message: /loop/ })
  t.notMatch(JSON.stringify(await bad('secret.toml')), /hunter2/, 'the text of the file is not shown')
})

t.test('an atomic write replaces the file or leaves the old one', async t => {
  const folder = t.testdir({ 'a.toml': 'old' })
  const path = join(folder, 'a.toml')

  await t.test('keeps the mode, makes folders and leaves nothing else', async t => {
    chmodSync(path, 0o640)
    await writeFileAtomic(path, 'new')
    t.equal(readFileSync(path, 'utf8'), 'new')
    t.equal(statSync(path).mode & 0o777, 0o640)
    await writeFileAtomic(path, 'newer', { mode: 0o600, forceMode: true })
    t.equal(statSync(path).mode & 0o777, 0o600)
    await writeFileAtomic(join(folder, 'x/y/z.toml'), 'deep', { mode: 0o600 })
    t.equal(statSync(join(folder, 'x/y/z.toml')).mode & 0o777, 0o600)
    t.same(readdirSync(folder).sort(), ['a.toml', 'x'])
  })

  await t.test('follows a symbolic link', async t => {
    symlinkSync('a.toml', join(folder, 'link.toml'))
    await writeFileAtomic(join(folder, 'link.toml'), 'through')
    t.equal(readFileSync(path, 'utf8'), 'through')
    t.ok((await fs.lstat(join(folder, 'link.toml'))).isSymbolicLink())
  })

  await t.test('exclusive: only when there is none', async t => {
    await t.rejects(writeFileAtomic(path, 'no', { exclusive: true }), { code: 'EEXIST' })
    await writeFileAtomic(join(folder, 'fresh.toml'), 'yes', { exclusive: true })
    t.equal(readFileSync(join(folder, 'fresh.toml'), 'utf8'), 'yes')
    const noLinks: FileOps = { ...fs, link: async () => { throw Object.assign(new Error('no'), { code: 'EPERM' }) } }
    await t.rejects(writeFileAtomic(path, 'no', { exclusive: true, ops: noLinks }), { code: 'EEXIST' })
    await writeFileAtomic(join(folder, 'fat.toml'), 'yes', { exclusive: true, ops: noLinks })
    t.equal(readFileSync(join(folder, 'fat.toml'), 'utf8'), 'yes')
  })

  await t.test('that fails changes nothing, at whatever step', async t => {
    const before = readdirSync(folder).sort()
    const fail = (code: string) => async () => { throw Object.assign(new Error(code), { code }) }
    const open = (over: object): FileOps['open'] => async (...args) => Object.assign(await fs.open(...args), over)
    const steps: readonly (readonly [string, Partial<FileOps>])[] = [
      ['open', { open: fail('EROFS') }],
      ['write', { open: open({ writeFile: fail('ENOSPC') }) }],
      ['mode', { open: open({ chmod: fail('EPERM') }) }],
      ['sync', { open: open({ sync: fail('EIO') }) }],
      ['rename', { rename: fail('EACCES') }],
      ['folder', { mkdir: fail('ENOTDIR') }]
    ]
    for (const [name, ops] of steps) {
      await t.rejects(writeFileAtomic(path, 'half', { ops: { ...fs, ...ops } }), name)
      t.equal(readFileSync(path, 'utf8'), 'through', name)
      t.same(readdirSync(folder).sort(), before, `${name} leaves no temporary file`)
    }
  })

  await t.test('a file is removed once, and an absent one is an error', async t => {
    await removeFile(join(folder, 'fresh.toml'))
    await t.rejects(removeFile(join(folder, 'fresh.toml')), { code: 'ENOENT' })
  })
})

t.test('a writer that is killed leaves the old content or the new, and its temporary file is swept', async t => {
  const folder = t.testdir({})
  const path = join(folder, 'a.toml')
  let leftBehind = 0
  for (let i = 0; i < 6; i++) {
    const child = fork(join(import.meta.dirname, 'write-child.js'), [path], { execArgv: [], silent: true })
    t.teardown(() => child.kill('SIGKILL'))
    await once(child, 'message')
    // a different moment of the loop every time
    for (let spin = performance.now() + i * 3; performance.now() < spin;);
    child.kill('SIGKILL')
    await once(child, 'exit')
    const { round, end } = parseToml(readFileSync(path, 'utf8'))
    t.equal(round, end)
    leftBehind += readdirSync(folder).length - 1
    await sweepTempFiles(folder, Date.now())
    t.same(readdirSync(folder), ['a.toml'])
  }
  t.comment(`${leftBehind} temporary files were left behind and swept`)
})

t.test('sweeping spares running writers, other files, and young files of places it cannot see', async t => {
  const [scope, pid, start, random] = uniqueToken().split('-')
  const foreign = `.a.toml.0123abcd-1-2-${random}.tmp`
  const old = `.b.toml.0123abcd-1-2-${random}.tmp`
  const folder = t.testdir(Object.fromEntries([
    `.a.toml.${scope}-${pid}-${start}-${random}.tmp`, `.dead.toml.${scope}-999999999-1-${random}.tmp`, foreign, old, '.a.swp', 'a.tmp'
  ].map(name => [name, ''])))
  utimesSync(join(folder, old), 0, 0)
  t.equal(await sweepTempFiles(folder, Date.now()), 2)
  t.same(readdirSync(folder).sort(), ['.a.swp', 'a.tmp', foreign, `.a.toml.${scope}-${pid}-${start}-${random}.tmp`].sort())
  t.equal(await sweepTempFiles(join(folder, 'none'), 0), 0)
})

t.test('a reused pid counts as dead, and a process of another scope as unknown', async t => {
  const own = ownIdentity()
  t.same(parseToken(uniqueToken()), own)
  t.not(uniqueToken(), uniqueToken())
  t.equal(parseToken('anything'), null)
  t.equal(livenessOf(own), 'alive')
  t.equal(livenessOf({ ...own, start: '1' }), existsSync('/proc') ? 'dead' : 'alive', 'a reused pid is another process')
  t.equal(livenessOf({ ...own, pid: 999_999_999 }), 'dead')
  t.equal(livenessOf({ ...own, scope: '00000000' }), 'unknown')
  const child = fork(join(import.meta.dirname, 'write-child.js'), ['/dev/null/x'], { execArgv: [], silent: true })
  await once(child, 'exit')
  t.equal(livenessOf({ ...own, pid: child.pid! }), 'dead')
})

t.test('api.env is read as a shell would, and a key is set in place', async t => {
  const text = [
    '# keys', 'A="one \\"two\\" \\\\ three"', 'B=\'si ngle\'', 'export C = bare value ', '  D="x" # why', '#E="off"', '', 'A2=', 'bad line', 'F="open', 'B="last"', ''
  ].join('\n')
  const { values, problems } = parseSecretsEnv(text)
  t.same([...values], [['A', 'one "two" \\ three'], ['B', 'last'], ['C', 'bare value'], ['D', 'x'], ['A2', '']])
  t.same(problems.map(({ path, line }) => [path.join(), line]), [['', 9], ['F', 10]])
  t.notMatch(JSON.stringify(problems), /open/, 'no value is shown')

  t.equal(setSecretLine('', 'A', 'x"y\\'), 'A="x\\"y\\\\"\n')
  t.equal(setSecretLine('# c\n# A="old"\nB="b"\nA="older"\n', 'A', 'new'), '# c\nA="new"\nB="b"\n', 'in place, once')
  t.equal(removeSecretLines('A="1"\n#A="2"\nAB="3"\n', 'A'), 'AB="3"\n')
  t.equal(parseSecretsEnv(setSecretLine('', 'K', 'p"a\\s$s \'w')).values.get('K'), 'p"a\\s$s \'w')
})

t.test('a misspelt key is answered with the one that was meant', async t => {
  const known = ['device', 'default', 'context_size', 'port', 'mtp']
  const table: readonly (readonly [string, string | null])[] = [
    ['devcie', 'device'], ['Device', 'device'], ['context-size', 'context_size'], ['contextsize', 'context_size'], ['prot', 'port'],
    ['mpt', 'mtp'], ['zzz', null], ['', null], ['x'.repeat(5000), null]
  ]
  for (const [word, meant] of table) t.equal(suggest(word, known), meant, word.slice(0, 20))
})

t.test('secrets are masked in texts, also as URLs and JSON encode them', async t => {
  const clean = secretCleaner(['hunter2hunter2', 'hunter2', 'a+b/c d"e', '12345', '$.*^-'])
  t.equal(clean('x hunter2hunter2 hunter2, hunter22'), 'x *** ***, ***2')
  t.equal(clean('?key=a%2Bb%2Fc%20d%22e&k=a%2Bb%2Fc+d%22e {"k":"a+b/c d\\"e"}'), '?key=***&k=*** {"k":"***"}', 'also as URLs and JSON write them')
  t.equal(clean('port 12345 $.*^- $'), 'port 12345 $.*^- $', 'what is short stays')
  t.equal(secretCleaner([])('text'), 'text')
  t.equal(secretCleaner([':'.repeat(100_000), 'hunter2'])(`a hunter2 b ${':'.repeat(100_001)}`), 'a *** b ***:', 'of any length')
  t.equal(secretCleaner(['(((((('])('x ((((((('), 'x ***(')
})
