import t from 'tap'
import { svcError, type NewEvent } from '../../../kernel/contract/index.js'
import type { ContainerRuntime, PullProgress } from '../../../kernel/contract/provider/engine-runtime.js'
import { ImagePulls } from '../../../kernel/slots/life/image-pulls.js'
import { settle } from '../../../kernel/testing/fake-clock.js'

const never = new AbortController().signal

t.test('a slot has one pull at a time; its readers see every step, and a failed one can be tried again', async t => {
  const image = { ref: 'example.org/engine:1', digest: null, warning: null }
  const events: NewEvent[] = []
  let progress = (_: PullProgress): void => {}
  let finish = { resolve: (): void => {}, reject: (_: Error): void => {} }
  let present = false
  let pulls = 0
  const runtime = {
    imagePresent: async () => present,
    pull: (_ref: string, _digest: string | null, onProgress: typeof progress, signal: AbortSignal) =>
      new Promise<void>((resolve, reject) => {
        pulls++
        progress = onProgress
        finish = { resolve, reject }
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
      })
  } as unknown as ContainerRuntime
  const images = new ImagePulls(() => runtime, { emit: (event: NewEvent) => { events.push(event) } } as never)
  const layers = (layer: number): PullProgress => ({ layer, totalLayers: 4, currentBytes: layer * 10, totalBytes: 40, message: '' })

  t.match(await images.status('a', image, never), { state: 'missing', slot_name: 'a', image: image.ref })
  t.match(images.start('a', image), { resumed: false, status: { state: 'pulling', layer: 0 } })
  t.match(images.start('a', image), { resumed: true }, 'one at a time per slot')
  t.equal(pulls, 1)
  const seen: string[] = []
  const watching = (async () => { for await (const status of images.watch('a', image, never)) seen.push(`${status.state} ${status.layer}`) })()
  await settle()
  progress(layers(2))
  await settle()
  t.match(await images.status('a', image, never), { state: 'pulling', layer: 2, current_bytes: 20 })
  finish.resolve()
  await watching
  t.strictSame(seen, ['pulling 0', 'pulling 2', 'completed 2'])
  present = true
  t.match(await images.status('a', image, never), { state: 'present' }, 'afterwards the runtime is asked')
  t.strictSame((await images.watch('a', image, never).next()).value, { ...await images.status('a', image, never) })

  images.start('a', image)
  finish.reject(svcError('runtime.image_missing', 'no such tag'))
  await settle()
  t.match(await images.status('a', image, never), { state: 'failed', error: 'no such tag' })
  t.match(await images.status('a', { ...image, ref: 'another' }, never), { state: 'present', image: 'another' }, 'a failure says nothing about another image')
  t.match(images.start('a', image), { resumed: false }, 'and can be tried again')
  await images.close()
  t.match(await images.status('a', image, never), { state: 'cancelled' }, 'a stopping gateway ends them')
  t.strictSame(events.map(({ type, severity }) => `${type} ${severity}`),
    ['pull.progress info', 'pull.completed info', 'pull.failed error', 'pull.cancelled info'])
})
