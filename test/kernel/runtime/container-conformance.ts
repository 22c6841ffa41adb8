import type { Test } from 'tap'
import { runtimeConformance, tinyContainer } from '../../../kernel/testing/index.js'
import { freePort } from '../../ports.js'
import { openDocker, testEngine } from './engines.js'

/** What every driver must do, on one container engine. */
export async function containerConformance (t: Test, kind: 'docker' | 'podman'): Promise<void> {
  const engine = await testEngine(t, kind)
  if (engine === null) return
  const checks = runtimeConformance({
    open: () => openDocker(engine.host), spec: wish => tinyContainer(engine.nodeImage, wish), port: freePort
  })
  for (const { name, run } of checks) t.test(name, run)
}
