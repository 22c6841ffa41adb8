import { chmodSync, chownSync, linkSync, lstatSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { judgePath, type PathFacts } from '../../../cli/offline/doctor/ownership.js'
import { run } from '../support.js'

const isRoot = process.getuid?.() === 0

t.test('what is judged of a path', t => {
  const facts = (stats: Partial<NonNullable<PathFacts['stats']>> | null, isSecret = false): PathFacts => ({
    path: '/p', label: 'l', isSecret, stats: stats === null ? null : { uid: 5, gid: 6, mode: 0o644, links: 1, kind: 'file', ...stats }
  })
  const owner = { uid: 5, gid: 6 }
  const cases: ReadonlyArray<readonly [PathFacts, object]> = [
    [facts(null), { status: 'absent', repair: null }],
    [facts({}), { status: 'ok', repair: null }],
    [facts({ kind: 'link', uid: 0, mode: 0o777 }), { status: 'ok', repair: null }],
    [facts({ uid: 0, gid: 0 }), { status: 'drift', detail: 'belongs to user 0 instead of 5', repair: { uid: 5, gid: 6, mode: 0o644 } }],
    [facts({ mode: 0o666 }), { status: 'drift', detail: 'mode 0666 instead of 0664', repair: { mode: 0o664 } }],
    [facts({ mode: 0o644 }, true), { status: 'drift', detail: 'mode 0644 instead of 0600', repair: { mode: 0o600 } }],
    [facts({ kind: 'folder', mode: 0o1777, links: 4 }), { status: 'drift', repair: { mode: 0o1775 } }],
    [facts({ uid: 0, links: 2 }), { status: 'drift', detail: /other hard links/, repair: null }]
  ]
  for (const [given, expected] of cases) t.match(judgePath(given, owner), expected)
  t.end()
})

function home (t: Test): string {
  const folder = t.testdir({
    etc: { svc: { 'svc.toml': '', 'api.env': 'A="b"\n', 'slots': { 'agent.toml': '' } } },
    var: { lib: { svc: { registry: { 'registry.toml': '' }, models: { 'big.gguf': '' } } } }
  })
  chmodSync(join(folder, 'etc/svc/api.env'), 0o600)
  return folder
}

t.test('all is well, then a secret lies open', async t => {
  const folder = home(t)
  t.match(await run(['doctor', 'perms', '--home', folder]), { code: 0, stdout: /^None of \d+ paths has the wrong owner or mode\.\n$/ })
  writeFileSync(join(folder, 'etc/svc/proxmox.json'), '{}', { mode: 0o644 })
  t.match(await run(['doctor', 'perms', '--home', folder]), { code: 1, stdout: /^drift \S*proxmox\.json: mode 0644 instead of 0600\n$/ })
  chmodSync(join(folder, 'etc/svc/proxmox.json'), 0o600)
  chmodSync(join(folder, 'etc/svc/api.env'), 0o644)
  const { code, stdout, stderr } = await run(['doctor', 'perms', '--home', folder])
  t.equal(code, 1)
  t.match(stdout, /^drift \S*api\.env: mode 0644 instead of 0600\n$/)
  t.match(stderr, 'sudo svc doctor perms --fix')
  const json = JSON.parse((await run(['doctor', 'perms', '--json', '--home', folder])).stdout) as Array<{ path: string, status: string }>
  t.match(json.find(({ path }) => path.endsWith('api.env')), { label: 'configuration', status: 'drift', detail: 'mode 0644 instead of 0600' })
  t.notOk(json.some(({ path }) => path.endsWith('big.gguf')), 'models are left alone')
  t.match(await run(['doctor', 'perms', '--home', t.testdir({})]), { code: 1, stderr: /cannot be read \(ENOENT\)/ })
})

t.test('--fix is refused for a user who is not root', { skip: isRoot ? 'this is root' : false }, async t => {
  t.match(await run(['doctor', 'perms', '--fix', '--home', home(t)]), { code: 1, stderr: /--fix needs root/ })
})

t.test('--fix sets right what is safe to touch', { skip: isRoot ? false : 'only root may give files away' }, async t => {
  const folder = home(t)
  const outside = join(folder, 'outside')
  writeFileSync(outside, 'x', { mode: 0o644 })
  const at = (path: string): string => join(folder, path)
  for (const path of ['var/lib/svc', 'var/lib/svc/registry', 'var/lib/svc/registry/registry.toml', 'var/lib/svc/models', 'etc/svc', 'etc/svc/slots',
    'etc/svc/slots/agent.toml', 'etc/svc/api.env']) chownSync(at(path), 4242, 4242)
  chmodSync(at('etc/svc/slots'), 0o777)
  symlinkSync(outside, at('etc/svc/link.toml'))
  linkSync(outside, at('etc/svc/second.toml'))
  const { code, stdout } = await run(['doctor', 'perms', '--fix', '--home', folder])
  t.equal(code, 1, 'what has a second name is left to people')
  t.match(stdout, /ok +\S*svc\.toml: fixed: belongs to user 0/)
  t.match(statSync(at('etc/svc/svc.toml')), { uid: 4242, gid: 4242 })
  t.equal(statSync(at('etc/svc/slots')).mode & 0o777, 0o775)
  t.match(statSync(outside), { uid: 0 }, 'neither a link nor a second name leads out')
  t.equal(lstatSync(at('etc/svc/link.toml')).isSymbolicLink(), true)
})
