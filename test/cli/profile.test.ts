import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { textWidth } from '../../cli/terminal/text-width.js'
import { apiOf } from '../plugins/api/support.js'
import { FakeProcess, run } from './support.js'

const api = apiOf('api-profiles', 'api-slots', 'api-status')

t.test('a profile from its creation to its end, and over to another host', async t => {
  const gateway = await api(t)
  const folder = t.testdir()
  const svc = (...args: readonly string[]) => run(['profile', ...args, '--url', gateway.baseUrl], { cwd: folder })
  const list = await svc('list')
  t.match(list.stdout, /^NAME +FOR +.*USED BY/)
  t.match(list.stdout, /rocm-dnse +gpu \(rocm\)/)
  for (const line of list.stdout.trimEnd().split('\n')) t.ok(textWidth(line) <= 80, line)

  const created = await svc('create', 'long', '--from', 'rocm', '--flags', '--flash-attn on', '--intent', 'long texts')
  t.match(created, { code: 0, stdout: 'Profile long is created.\nUse it: svc slot edit <slot> --profile long\n' })
  const record = JSON.parse((await svc('show', 'long', '--json')).stdout) as object
  const base = JSON.parse((await svc('show', 'rocm', '--json')).stdout) as { image: string }
  t.match(record, { image: base.image, flags: '--flash-attn on', device_class: 'gpu', backend: 'rocm', cloned_from: 'rocm', seed: false })
  t.match((await svc('show', 'long')).stdout, /name +long\nfor +gpu \(rocm\)\nimage +.*\nflags +--flash-attn on\n/)
  t.equal((await svc('create', 'small', '--from', 'rocm', '--device-class', 'cpu')).code, 0, 'the backend stays behind')
  t.match(await svc('create', 'long', '--from', 'rocm'), { code: 1, stderr: /profiles\.exists/ })
  t.match(await svc('create', 'x'), { code: 2, stderr: /an image is needed/ })

  t.match(await svc('edit', 'long', '--mtp', '--quant', 'Q4_K_M'), { code: 0, stdout: 'Profile long is changed.\n' })
  t.match(JSON.parse((await svc('show', 'long', '--json')).stdout), { mtp: true, quant: 'Q4_K_M', flags: '--flash-attn on' })
  t.match(await svc('edit', 'long'), { code: 2, stderr: /no changes were given/ })
  t.match(await svc('edit', 'rocm', '--mtp'), { code: 1, stderr: /profiles\.seed_immutable/ })

  t.match(await svc('export', 'long', '-o', 'long.json'), { code: 0, stdout: 'Profile long is in long.json.\n' })
  t.match(await svc('export', 'long', '-o', 'no/such/folder.json'), { code: 1, stderr: /cannot be written \(ENOENT\)/ })
  const envelope = JSON.parse(readFileSync(join(folder, 'long.json'), 'utf8')) as object
  t.match(envelope, { kind: 'svc.profile', name: 'long', checksum: /^sha256:/ })
  t.match(JSON.parse((await svc('export', 'long')).stdout), { ...envelope, exported_at: String })
  t.match(await svc('import', 'long.json', '--dry-run'), { code: 1, stderr: /profile long already exists/ })
  t.match(await svc('import', 'long.json', '--dry-run', '--name', 'other'), { code: 0, stdout: 'The envelope is valid, and the name other is free.\n' })
  t.match(JSON.parse((await svc('import', 'long.json', '--dry-run', '--name', 'other', '--json')).stdout), { dry_run: true, valid: true })
  t.match(await svc('import', 'long.json', '--name', 'other'), { code: 0, stdout: 'Profile other is created.\n' })
  t.match(await svc('import', 'nowhere.json'), { code: 2, stderr: /nowhere\.json cannot be read \(ENOENT\)/ })

  writeFileSync(join(folder, 'bent.json'), readFileSync(join(folder, 'long.json'), 'utf8').replace('long texts', 'short texts'))
  t.match(await svc('import', 'bent.json', '--dry-run', '--name', 'bent'), { code: 1, stderr: /checksum of the envelope is wrong/ })
  t.match(await svc('import', 'bent.json', '--name', 'bent'), { code: 1, stderr: /profiles\.bad_envelope/ })
  const piped = new FakeProcess()
  piped.stdin.end('no json')
  t.match(await piped.run('profile', 'import', '-', '--url', gateway.baseUrl), { code: 2, stderr: /standard input holds no envelope/ })

  t.match(await svc('delete', 'long'), { code: 0, stdout: 'Profile long is deleted.\n' })
  t.match(await svc('delete', 'long', '-f'), { code: 1, stderr: /profiles\.not_found/ })
})
