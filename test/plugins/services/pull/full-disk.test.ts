import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { ggufFile } from '../../../kernel/models/gguf-file.js'
import { smallDisk } from '../../../mounts.js'
import { content, pullGateway } from './support.js'

const MB = 1024 * 1024

t.test('a disk that is too small, gets full, and has room again', async t => {
  const store = smallDisk(t, 6)
  if (store === null) return t.comment('skipped: no file system can be mounted here; disk.test.ts checks the arithmetic')
  const gateway = await pullGateway(t, { store })
  const { hub } = gateway
  const file = ggufFile({ weights: 4 * MB })
  hub.add('org/big', { files: { 'big.gguf': ggufFile({ weights: 8 * MB }), 'mid.gguf': file, 'small.gguf': ggufFile({ weights: 3 * MB }) } })
  const pull = (id: string) => gateway.call('POST', `/api/models/${id}/pull`, { hf_repo: 'org/big', hf_filename: `${id}.gguf` })

  t.match(await pull('big'), {
    status: 507,
    json: { error: { code: 'model.insufficient_disk', message: /do not fit into .*make room/, details: { needed_bytes: Number, free_bytes: Number, promised_bytes: 0 } } }
  })
  t.same(await gateway.files(), [], 'nothing was begun')

  hub.fail('cdn', 'mid', { kind: 'stall', after: MB })
  await pull('mid')
  await gateway.received('mid', MB)
  const second = await pull('small')
  t.match(second, { status: 507, json: { error: { code: 'model.insufficient_disk', message: /other pulls will fill/ } } })
  t.ok(second.json.error.details.promised_bytes >= 3 * MB - 64 * 1024, 'what the running one still needs is not given away')

  await writeFile(join(store, 'somebody-else'), Buffer.alloc(3 * MB))
  t.match(await gateway.over('mid'), { state: 'failed', error_code: 'model.insufficient_disk', error: /the disk is full; make room/ })
  const kept = (await gateway.call('GET', '/api/models/mid/pull/status')).json.bytes_downloaded
  t.ok(kept > MB, `${kept} bytes are kept`)
  t.equal((await pull('mid')).status, 507)
  await rm(join(store, 'somebody-else'))
  const before = hub.served('mid.gguf')
  t.equal((await pull('mid')).status, 202)
  t.match(await gateway.over('mid'), { state: 'completed' })
  t.ok(file.equals(await content(gateway, 'mid/mid.gguf')))
  t.equal(hub.served('mid.gguf') - before, file.length - kept, 'only what was missing')
})
