import t from 'tap'
import type { PullProgress } from '../../../kernel/contract/provider/engine-runtime.js'
import { pullErrorOf, PullTally, type PullLine } from '../../../kernel/runtime/image/pull-progress.js'

function tally (kind: 'docker' | 'podman', lines: readonly PullLine[]): PullProgress[] {
  const sum = new PullTally(kind)
  return lines.map(line => sum.add(line)).filter(progress => progress !== null)
}

t.test('the progress of a Docker pull never goes back', async t => {
  const told = tally('docker', [
    { status: 'Pulling from owner/name', id: 'tag' },
    { status: 'Pulling fs layer', progressDetail: {}, id: 'aaa' },
    { status: 'Pulling fs layer', progressDetail: {}, id: 'bbb' },
    { status: 'Already exists', progressDetail: {}, id: 'ccc' },
    { status: 'Waiting', progressDetail: {}, id: 'bbb' },
    { status: 'Downloading', progressDetail: { current: 10, total: 100 }, id: 'aaa' },
    { status: 'Downloading', progressDetail: { current: 10, total: 100 }, id: 'aaa' },
    { status: 'Downloading', progressDetail: { current: 5, total: 50 }, id: 'bbb' },
    { status: 'Download complete', progressDetail: {}, id: 'bbb' },
    { status: 'Verifying Checksum', progressDetail: {}, id: 'aaa' },
    { status: 'Extracting', progressDetail: { current: 1, total: 100 }, id: 'aaa' },
    { status: 'Pull complete', progressDetail: {}, id: 'aaa' },
    { status: 'Extracting', progressDetail: { current: 50, total: 50 }, id: 'bbb' },
    { status: 'Pull complete', progressDetail: {}, id: 'bbb' },
    { status: 'Digest: sha256:123' },
    { status: 'Status: Downloaded newer image for owner/name:tag' }
  ])
  const bytes = told.map(progress => progress.currentBytes)
  t.same(bytes, [...bytes].sort((a, b) => a - b), 'bytes never go back')
  t.equal(told.length, 15, 'a line that changes nothing is not told')
  t.same(told[0], { layer: 0, totalLayers: 0, currentBytes: 0, totalBytes: 0, message: 'Pulling from owner/name' })
  t.same(told[5], { layer: 1, totalLayers: 3, currentBytes: 10, totalBytes: 100, message: 'aaa: Downloading' })
  t.same(told.at(-1), {
    layer: 3, totalLayers: 3, currentBytes: 150, totalBytes: 150, message: 'Status: Downloaded newer image for owner/name:tag'
  })
})

t.test('Podman says no more than that a layer is fetched', async t => {
  t.match(tally('podman', [
    { status: 'Pulling fs layer', progressDetail: {}, id: 'aaa' },
    { status: 'Downloading', progressDetail: { current: 60, total: 90 }, id: 'aaa' },
    { status: 'Download complete', progressDetail: {}, id: 'aaa' }
  ]).at(-1), { layer: 1, totalLayers: 1, currentBytes: 90, totalBytes: 90 })
})

t.test('a layer that is fetched again, a total that is not known', async t => {
  t.match(tally('docker', [
    { status: 'Downloading', progressDetail: { current: 60, total: 90 }, id: 'aaa' },
    { status: 'Retrying in 5 seconds', progressDetail: {}, id: 'aaa' },
    { status: 'Downloading', progressDetail: { current: 1, total: 90 }, id: 'aaa' },
    { status: 'Downloading', progressDetail: { current: 7, total: -1 }, id: 'bbb' }
  ]).at(-1), { totalLayers: 2, currentBytes: 8, totalBytes: 97 })
})

t.test('progress lines of unknown shape are ignored, and errors are found', async t => {
  t.same(tally('docker', [{}, { status: 5 }, { id: 'x' }, { status: '', id: 'x' }, { error: 'boom' }]), [])
  for (const [line, problem] of [
    [{ error: 'boom' }, 'boom'], [{ errorDetail: { message: 'boom' }, error: 'other' }, 'boom'], [{ errorDetail: {}, error: 'other' }, 'other'],
    [{ status: 'Downloading', errorDetail: null, error: '' }, null]
  ] as const) t.equal(pullErrorOf(line), problem)
})
