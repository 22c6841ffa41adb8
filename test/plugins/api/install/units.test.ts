import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { installGateway } from './support.js'

function emptyFolder (t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-units-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A systemctl of our own on the PATH of this process: it writes down what it is told. */
function systemctl (t: Test, script: string): () => string {
  const folder = emptyFolder(t)
  mkdirSync(join(folder, 'bin'))
  const log = join(folder, 'log')
  const file = join(folder, 'bin', 'systemctl')
  writeFileSync(log, '')
  writeFileSync(file, `#!/bin/sh\necho "$*" >> ${log}\n${script}\n`)
  chmodSync(file, 0o755)
  const before = process.env.PATH
  process.env.PATH = `${join(folder, 'bin')}:${before ?? ''}`
  t.teardown(() => { process.env.PATH = before })
  return () => readFileSync(log, 'utf8')
}

t.test('units of a machine with systemd', async t => {
  const log = systemctl(t, `
case "$1 $2" in
  "restart hindsight-api.service") echo "Job for hindsight-api.service failed." >&2; exit 1 ;;
  is-active*) shift; for unit in "$@"; do [ "$unit" = svc-openwebui.service ] && echo active || echo inactive; done; [ "$#" = 1 ] || exit 3 ;;
esac`)
  const gateway = await installGateway(t)
  const { json } = await gateway.call('GET', '/api/install/services')
  t.match(json.services, [
    { unit: 'svc-openwebui.service', active: true, repairable: true }, { unit: 'svc-api.service', active: false, repairable: true },
    { unit: 'hindsight-api.service' }, { unit: 'svc-agent@hermes.service' }, { unit: 'svc-slot@img.service' }
  ])
  const repair = (unit: string) => gateway.call('POST', `/api/install/services/${encodeURIComponent(unit)}/repair`)
  t.match(await repair('svc-openwebui.service'), { status: 200, json: { unit: 'svc-openwebui.service', active: true } })
  t.match(await repair('comfyui'), { status: 200, json: { unit: 'svc-slot@img.service', active: false } })
  t.match(await repair('svc-api.service'), { status: 200, json: { deferred: true } })
  t.match(log(), /^restart svc-openwebui\.service$[^]*^restart --no-block svc-api\.service$/m)
  t.match(await repair('hindsight-api.service'), { status: 400, json: { error: { code: 'install.pick_default_failed', message: /Job for hindsight.*failed.*journalctl/ } } })
  const before = log()
  for (const unit of ['ssh.service', '--now', '; reboot', 'svc-openwebui.service svc-api.service', '__proto__']) {
    t.match(await repair(unit), { status: 400, json: { error: { code: 'install.unit_not_repairable', details: { allowed: ['svc-openwebui.service'] } } } }, unit)
  }
  t.equal(log(), before, 'nothing was run for those')
})

t.test('no unit can be restarted on a machine without systemd', async t => {
  const before = process.env.PATH
  process.env.PATH = emptyFolder(t)
  t.teardown(() => { process.env.PATH = before })
  const gateway = await installGateway(t)
  const { json } = await gateway.call('GET', '/api/install/services')
  t.ok(json.services.every((row: { active: boolean, repairable: boolean }) => !row.active && !row.repairable))
  t.match(await gateway.call('POST', '/api/install/services/svc-api.service/repair'),
    { status: 400, json: { error: { code: 'install.unit_not_repairable', message: /no systemd/ } } })
})
