import type { Test } from 'tap'
import { connectDocker, type DockerEngine } from '../../../kernel/runtime/docker/docker-connect.js'
import { parseDockerHost } from '../../../kernel/runtime/docker/docker-endpoint.js'
import { createDockerRuntime } from '../../../kernel/runtime/docker/docker-runtime.js'
import type { ContainerRuntime } from '../../../kernel/contract/provider/engine-runtime.js'
import { realClock, recordingLogger } from './support.js'

/** What `eval "$(test/engines/up.sh)"` gives: container engines, a registry and images. */
export interface TestEngine {
  readonly kind: 'docker' | 'podman'
  readonly host: string
  /** An image with node and no entry point. */
  readonly nodeImage: string
  /** An image with llama-server. */
  readonly llamaImage: string
}

const HINT = 'run: eval "$(test/engines/up.sh)"'

/**
 * The container engine for tests, or null after the test was marked as skipped because there is none. With
 * `SVC_TEST_CONTAINERS=required` that is a failure instead.
 */
export async function testEngine (t: Test, kind: 'docker' | 'podman'): Promise<TestEngine | null> {
  const variable = `SVC_TEST_${kind.toUpperCase()}_HOST`
  const host = process.env[variable]
  const nodeImage = process.env.SVC_TEST_SPEECH_IMAGE
  const llamaImage = process.env.SVC_TEST_LLAMA_IMAGE
  if (host === undefined || nodeImage === undefined || llamaImage === undefined) {
    return skipped(t, `${variable} and the image variables are not set; ${HINT}`)
  }
  try {
    const engine = await connectTo(host)
    engine.close()
    if (engine.facts.kind !== kind) return skipped(t, `${host} is ${engine.facts.kind}, not ${kind}; ${HINT}`)
  } catch (error) {
    return skipped(t, `${host} does not answer (${String(error)}); ${HINT}`)
  }
  return { kind, host, nodeImage, llamaImage }
}

/** `127.0.0.1:port` of the registry for tests, or null as above. */
export async function testRegistry (t: Test): Promise<string | null> {
  const address = process.env.SVC_TEST_REGISTRY
  if (address === undefined) return skipped(t, `SVC_TEST_REGISTRY is not set; ${HINT}`)
  try {
    await fetch(`http://${address}/v2/`, { signal: AbortSignal.timeout(120_000) })
    return address
  } catch (error) {
    return skipped(t, `the registry ${address} does not answer (${String(error)}); ${HINT}`)
  }
}

export function connectTo (host: string, withinMs = 30_000): Promise<DockerEngine> {
  const endpoint = parseDockerHost(host, {})
  if (typeof endpoint === 'string') throw new Error(endpoint)
  return connectDocker(endpoint, { clock: realClock, withinMs })
}

export async function openDocker (host: string, log = recordingLogger()): Promise<ContainerRuntime> {
  return createDockerRuntime({ engine: await connectTo(host), clock: realClock, log, reason: 'test' })
}

/** Says why there is nothing to test; a failure where the containers are required. */
export function skipped (t: Test, why: string): null {
  if (process.env.SVC_TEST_CONTAINERS === 'required') t.fail(`SVC_TEST_CONTAINERS=required, but ${why}`)
  else t.comment(`SKIPPED: ${why}`)
  t.pass('nothing to test here')
  return null
}
