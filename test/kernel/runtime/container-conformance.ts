import type { Test } from 'tap'
import { runtimeConformance } from './conformance.js'
import { openDocker, testEngine } from './engines.js'
import { tinyContainer } from './tiny-container.js'

/** What every driver must do, on one container engine. */
export async function containerConformance (t: Test, kind: 'docker' | 'podman'): Promise<void> {
  const engine = await testEngine(t, kind)
  if (engine === null) return
  runtimeConformance(t, {
    open: () => openDocker(engine.host),
    spec: wish => tinyContainer(engine.nodeImage, wish)
  })
}
