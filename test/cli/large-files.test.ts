import { truncateSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { LargeFiles } from '../../cli/bundle/large-files.js'

const MIB = 2 ** 20

t.test('files of any size are read whole, those that are large by way of one block until it is released', async t => {
  const folder = t.testdir({ none: '', small: 'ab', large: 'c'.repeat(MIB), larger: 'd'.repeat(2 * MIB), huge: '' })
  truncateSync(join(folder, 'huge'), 40 * MIB)
  const files = new LargeFiles()
  const read = (name: string): Buffer => files.read(join(folder, name))
  t.equal(read('none').length, 0)
  t.equal(read('small').toString(), 'ab')
  t.equal(read('huge').length, 40 * MIB)

  const large = read('large')
  t.equal(large.toString(), 'c'.repeat(MIB))
  t.ok(large.buffer.byteLength > 32 * MIB, 'what glibc takes no notice of when it is let go')
  const larger = read('larger')
  t.equal(larger.toString(), 'd'.repeat(2 * MIB))
  t.equal(larger.buffer, large.buffer)

  files.release()
  const later = read('large')
  t.equal(later.toString(), 'c'.repeat(MIB))
  t.not(later.buffer, large.buffer)
  t.throws(() => read('absent'), { code: 'ENOENT' })
})
