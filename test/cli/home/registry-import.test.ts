import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { buffer } from 'node:stream/consumers'
import { pack, type Header } from 'tar-stream'
import t from 'tap'
import { acquireLock } from '../../../kernel/state/file-lock.js'
import { run } from '../support.js'

const REGISTRY = '# of old\n[models."org/a"]\npath = "/m/a.gguf"\n\n[models.b]\npath = "relative"\n'

type Member = Partial<Header> & { readonly name: string, readonly content?: string | Buffer }

async function tar (...members: readonly Member[]): Promise<Buffer> {
  const archive = pack()
  for (const { content = '', ...header } of members) archive.entry(header, content)
  archive.finalize()
  return await buffer(archive as unknown as NodeJS.ReadableStream)
}

const registryAt = (name: string, content: string | Buffer = REGISTRY): Member => ({ name, content })

t.test('the registry of a backup, packed in whatever way', async t => {
  const home = t.testdir()
  const plain = await tar({ name: 'var/lib/svc/models/', type: 'directory' }, registryAt('registry.toml', 'not this one'), { name: 'etc/x', content: Buffer.alloc(3_000_000) },
    registryAt('./var/lib/svc/registry/registry.toml'), { name: 'z', content: 'more' })
  writeFileSync(join(home, 'plain.tar'), plain)
  writeFileSync(join(home, 'gz.tgz'), gzipSync(plain))
  for (const program of ['xz', 'bzip2', 'zstd']) {
    try {
      writeFileSync(join(home, `${program}.tar`), execFileSync(program, ['-c'], { input: plain, maxBuffer: 1e8, stdio: ['pipe', 'pipe', 'ignore'] }))
    } catch {
      t.comment(`${program} is not installed`)
    }
  }
  const dest = join(home, 'var/lib/svc/registry/registry.toml')
  for (const name of readdirSync(home).filter(each => /\./.test(each))) {
    const { code, stdout, stderr } = await run(['registry', 'import', name, '--home', home, '--force'], { cwd: home })
    t.equal(code, 0, `${name}: ${stderr}`)
    t.equal(stdout, `Restored 1 models to ${dest}.\n`)
    t.match(stderr, /^Warning: models\.b\.path must be an absolute path; the gateway ignores it\n$/)
    t.equal(readFileSync(dest, 'utf8'), REGISTRY, 'as it was, comments too')
  }
  t.same(readdirSync(join(home, 'var/lib/svc/registry')), ['registry.toml'], 'nothing else is unpacked, no lock stays')
  t.same(readdirSync(join(home, 'var/lib/svc')), ['registry'])
  for (const [name, archive] of [['short.tar', await tar(registryAt('registry/registry.toml'))], ['bare.tar', await tar(registryAt('registry.toml'))]] as const) {
    writeFileSync(join(home, name), archive)
    const other = join(home, `${name}.toml`)
    t.equal((await run(['registry', 'import', join(home, name), '--dest', other], { env: { SVC_HOME: home } })).code, 0)
    t.equal(readFileSync(other, 'utf8'), REGISTRY)
  }
})

t.test('what is there is not replaced unless it is asked for', async t => {
  const home = t.testdir({ 'b.tar': await tar(registryAt('registry.toml')), 'var': { lib: { svc: { registry: { 'registry.toml': 'mine = 1\n' } } } } })
  const path = join(home, 'var/lib/svc/registry/registry.toml')
  const svc = (...more: readonly string[]) => run(['registry', 'import', join(home, 'b.tar'), '--home', home, ...more])
  t.match(await svc(), { code: 1, stderr: /registry\.toml exists\n--force replaces it/ })
  t.equal(readFileSync(path, 'utf8'), 'mine = 1\n')
  const lock = await acquireLock(`${path}.lock`, { text: 'a gateway' })
  const waiting = svc('-f')
  await lock.release()
  t.match(await waiting, { code: 0 })
  mkdirSync(join(home, 'folder'))
  t.match(await svc('--dest', join(home, 'folder'), '-f'), { code: 1, stderr: /EISDIR|ENOTEMPTY|folder/ })
})

t.test('what is no such archive, or not to be trusted, is a usage error and writes nothing', async t => {
  const home = t.testdir()
  const good = await tar(registryAt('registry.toml'))
  const cases: ReadonlyArray<readonly [string, Buffer | null, RegExp]> = [
    ['missing', null, /does not exist/],
    ['empty', Buffer.alloc(0), /is empty/],
    ['text', Buffer.from('hello '.repeat(500)), /not a readable tar archive/],
    ['torn', good.subarray(0, 700), /not a readable tar archive/],
    ['torn-gz', gzipSync(good).subarray(0, 60), /not a readable tar archive/],
    ['torn-xz', Buffer.concat([Buffer.from('fd377a585a00', 'hex'), Buffer.alloc(100)]), /not a readable tar archive|not installed/],
    ['without', await tar({ name: 'other.toml', content: 'x' }), /contains no registry/],
    ['deeper', await tar(registryAt('deep/var/lib/svc/registry/registry.toml')), /contains no registry/],
    ['not-toml', await tar(registryAt('registry.toml', '[models')), /not valid TOML/],
    ['up', await tar(registryAt('../registry.toml'), registryAt('registry.toml')), /"\.\.\/registry\.toml" points outside/],
    ['up-later', await tar(registryAt('registry.toml'), { name: 'a/../../x', content: 'x' }), /points outside/],
    ['absolute', await tar(registryAt('/var/lib/svc/registry/registry.toml')), /points outside/],
    ['backslash', await tar({ name: '..\\x', content: 'x' }), /points outside/],
    ['symlink', await tar({ name: 'registry.toml', type: 'symlink', linkname: '/etc/passwd' }), /is a symbolic link/],
    ['hard-link', await tar(registryAt('x'), { name: 'registry.toml', type: 'link', linkname: 'x' }), /is a link/],
    ['linked-folder', await tar({ name: 'var', type: 'symlink', linkname: '/etc' }, registryAt('var/lib/svc/registry/registry.toml')), /is a symbolic link/],
    ['device', await tar({ name: 'dev/x', type: 'character-device' }), /is a character-device/],
    ['fifo', await tar({ name: 'x', type: 'fifo' }), /is a fifo/]
  ]
  for (const [name, bytes, why] of cases) {
    const path = join(home, name)
    if (bytes !== null) writeFileSync(path, bytes)
    const { code, stdout, stderr } = await run(['registry', 'import', path, '--home', home])
    t.equal(code, 2, name)
    t.match(stderr, why, name)
    t.equal(stdout, '')
  }
  mkdirSync(join(home, 'a-folder'))
  t.match(await run(['registry', 'import', join(home, 'a-folder'), '--home', home]), { code: 2, stderr: /is not a file/ })
  t.notOk(existsSync(join(home, 'var')))
  t.ok(existsSync(join(home, 'up')), 'the archives stay')
})
