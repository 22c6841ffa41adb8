import { existsSync, lstatSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { sandbox } from './plugin-sandbox.js'

t.test('a folder is installed as a copy, allowed by its name, and taken away again without a trace', async t => {
  const { plugin, pack, modules, svcToml, home } = sandbox(t, '# mine\n[server]\nport = 9001 # keep\n\n[plugins]\nallow = ["other"] # list\n')
  const folder = pack('svc-plugin-foo')
  const added = await plugin('add', folder)
  t.equal(added.code, 0, added.stderr)
  t.match(added.stdout, /^svc-plugin-foo 1\.0\.0 is installed, a plugin of kind provider\.\nintegrity {2}sha512-\S{20,}\n/)
  t.match(added.stdout, 'No gateway runs on this home')
  t.notOk(lstatSync(join(modules, 'svc-plugin-foo')).isSymbolicLink())
  t.notOk(existsSync(join(folder, 'ran')) || existsSync(join(modules, 'svc-plugin-foo/ran')), 'no script of it ran')
  t.ok(existsSync(join(realpathSync(join(modules, 'svc-gateway')), 'contract.js')), 'the host is linked, and whole')
  t.match(svcToml(), /# mine\n\[server\]\nport = 9001 # keep\n[^]*"other", "svc-plugin-foo"[^]*# list/)

  writeFileSync(join(folder, 'index.js'), 'export default 2\n')
  t.equal((await plugin('add', '../src/p0')).code, 0, 'a relative path; the same version with other content')
  t.equal(readFileSync(join(modules, 'svc-plugin-foo/index.js'), 'utf8'), 'export default 2\n')

  const list = await plugin('list')
  t.match(list.stdout, /svc-plugin-foo +installed +provider +package:svc-plugin-foo@1\.0\.0\n/)
  t.match(list.stdout, /other +missing +- /)
  t.match(list.stdout, '! other: it is on the allow-list but not installed; run `svc plugin add other`')
  const { plugins } = JSON.parse((await plugin('list', '--json')).stdout) as { plugins: unknown }
  t.match(plugins, [{ name: 'svc-plugin-foo', package: { version: '1.0.0', allowed: true, integrity: /^sha512-/ } }, { name: 'other', state: 'missing' }])

  t.match(await plugin('remove', 'svc-plugin-foo'), { code: 0, stdout: 'svc-plugin-foo is removed.\n' })
  t.notOk(existsSync(join(modules, 'svc-plugin-foo')))
  t.notOk(existsSync(join(home, 'var/lib/svc/plugins/packages/svc-plugin-foo')))
  t.ok(existsSync(join(modules, 'svc-gateway')))
  t.match(svcToml(), /allow = \[ ?"other" ?\] +# list/)
  t.match(await plugin('remove', 'svc-plugin-foo'), { code: 1, stderr: /svc-plugin-foo is not installed/ })
  t.equal((await plugin('remove', 'other')).code, 0, 'what is only allowed can be removed too')
})

t.test('a broken svc.toml is told before anything is installed', async t => {
  const { plugin, pack, modules } = sandbox(t, '[server]\nport = "x"\n')
  t.match(await plugin('add', pack('svc-plugin-foo')), { code: 1, stderr: /svc\.toml is not valid: server\.port/ })
  t.notOk(existsSync(modules))
})
