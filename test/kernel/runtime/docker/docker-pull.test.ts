import t, { type Test } from 'tap'
import type { ContainerRuntime, PullProgress } from '../../../../kernel/contract/provider/engine-runtime.js'
import { freePort } from '../../../ports.js'
import { connectTo, openDocker, testEngine, testRegistry } from '../engines.js'
import { deleteImage, pushImage, slowRegistry } from '../registry-image.js'
import { eventually, uniqueName, within } from '../support.js'

const quiet = new AbortController().signal
const MB = 1024 * 1024

interface Bench {
  readonly runtime: ContainerRuntime
  readonly registry: string
  /** A repository of its own for the test; its images are removed from the engine afterwards. */
  readonly name: string
  push (tag: string, layerBytes: readonly number[]): Promise<string>
}

t.setTimeout(600_000)
for (const kind of ['docker', 'podman'] as const) {
  t.test(`images come from a registry through ${kind}`, async t => {
    const engine = await testEngine(t, kind)
    const registry = await testRegistry(t)
    if (engine === null || registry === null) return

    const bench = (title: string, body: (t: Test, bench: Bench) => Promise<void>): void => {
      t.test(title, async t => {
        const runtime = await openDocker(engine.host)
        const name = uniqueName('svc-test/pull')
        const pushed: string[] = []
        t.teardown(async () => {
          await runtime.close()
          for (const digest of pushed) await deleteImage(registry, name, digest)
          const client = await connectTo(engine.host)
          for (const image of await client.docker.listImages()) {
            const ours = [...image.RepoTags ?? [], ...image.RepoDigests ?? []].some(ref => ref.includes(`/${name}`))
            if (ours) await client.docker.getImage(image.Id).remove({ force: true })
          }
          client.close()
        })
        const push = async (tag: string, layerBytes: readonly number[]): Promise<string> => {
          const digest = await pushImage(registry, name, tag, layerBytes)
          pushed.push(digest)
          return digest
        }
        await body(t, { runtime, registry, name, push })
      })
    }

    bench('by tag, with progress', async (t, { runtime, registry, name, push }) => {
      const digest = await push('1', [3 * MB, 2 * MB, MB])
      const slow = await slowRegistry(registry, MB) // Podman speaks once a second
      t.teardown(slow.close)
      const image = `${slow.address}/${name}:1`
      t.equal(await runtime.imagePresent(image, null, quiet), false)
      const told: PullProgress[] = []
      await runtime.pull(image, null, progress => { told.push(progress) }, quiet)
      t.equal(await runtime.imagePresent(image, null, quiet), true)
      t.equal(await runtime.imagePresent(image, digest, quiet), true, 'and the digest is known')
      t.equal(await runtime.imagePresent(image, `sha256:${'0'.repeat(64)}`, quiet), false)
      t.equal(await runtime.imagePresent(`${slow.address}/${name}:2`, null, quiet), false)
      const bytes = told.map(progress => progress.currentBytes)
      t.same(bytes, [...bytes].sort((a, b) => a - b), 'bytes never go back')
      const last = told.at(-1)!
      t.ok(last.totalLayers >= 3 && last.layer === last.totalLayers, `${last.layer} of ${last.totalLayers} layers`)
      t.ok(last.currentBytes === last.totalBytes && last.totalBytes > 2 * MB, `${last.currentBytes} of ${last.totalBytes} bytes`)
      t.ok(new Set(bytes).size > 3, `told ${told.length} times on the way`)
    })

    bench('by digest: the tag is left out, and made afterwards', async (t, { runtime, registry, name, push }) => {
      const pinned = await push('1', [1000, 2000])
      await push('1', [500])
      const image = `${registry}/${name}:1`
      await runtime.pull(image, pinned, () => undefined, quiet)
      t.equal(await runtime.imagePresent(image, pinned, quiet), true, 'though the tag means another image now')
      t.equal(await runtime.imagePresent(image, null, quiet), true, 'usable by its tag')
      await runtime.pull(`${image}@${pinned}`, null, () => undefined, quiet)
      t.equal(await runtime.imagePresent(`${image}@${pinned}`, null, quiet), true, 'the reference itself may hold the pin')
      await runtime.pull(image, null, () => undefined, quiet)
      t.equal(await runtime.imagePresent(image, pinned, quiet), true, 'the pinned one stays when the tag moves on')
    })

    bench('what is not there', async (t, { runtime, registry, name, push }) => {
      await push('1', [1000])
      const pull = (image: string, digest: string | null = null): Promise<void> =>
        within(300_000, image, runtime.pull(image, digest, () => undefined, quiet))
      const missing = (words: RegExp): { code: string, message: RegExp } => ({ code: 'runtime.image_missing', message: words })
      await t.rejects(pull(`${registry}/${name}:2`), missing(/manifest.*check the name, tag and digest/), 'tag')
      await t.rejects(pull(`${registry}/${name}:1`, `sha256:${'0'.repeat(64)}`), missing(/check the name, tag and digest/), 'digest')
      await t.rejects(pull(`${registry}/svc-test/nowhere:1`), missing(/check the name, tag and digest/), 'repository')
      await t.rejects(pull(`127.0.0.1:${await freePort()}/${name}:1`), missing(/connection refused.*registry can be reached/), 'registry')
      await t.rejects(pull(`${registry}/NOT/VALID:1`), missing(/lowercase/), 'no reference')
    })

    bench('an abort ends the transfer, and the next pull completes', async (t, { runtime, registry, name, push }) => {
      await push('1', [8 * MB])
      const slow = await slowRegistry(registry, MB / 4)
      t.teardown(slow.close)
      const leaving = new AbortController()
      const reason = new Error('gateway stops')
      const image = `${slow.address}/${name}:1`
      const pulling = runtime.pull(image, null, () => undefined, leaving.signal)
      await Promise.race([pulling, eventually('the layer is on its way', () => slow.open() > 0)])
      leaving.abort(reason)
      await t.rejects(pulling, reason)
      await eventually('the engine hangs up on the registry', () => slow.open() === 0)
      t.equal(slow.sent(), 0, 'before the layer was through')
      slow.hurry()
      t.equal(await runtime.imagePresent(image, null, quiet), false)
      await runtime.pull(image, null, () => undefined, quiet)
      t.equal(await runtime.imagePresent(image, null, quiet), true)
    })
  })
}
