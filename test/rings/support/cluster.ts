import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { eventually } from '../../kernel/runtime/support.js'
import { root } from '../../repository.js'

const execute = promisify(execFile)
const script = join(root, 'test/engines/kubernetes.sh')
const tools = process.env.SVC_TEST_KUBERNETES_TOOLS ?? ''

export interface Cluster {
  readonly kubeconfig: string
  /** Null for a cluster that is not ours to stop. */
  readonly folder: string | null
  readonly kubectl: (...words: readonly string[]) => Promise<string>
}

/** Brings one up where there are tools for it, and stops it after the test; null after the test was skipped. */
export async function cluster (t: Test): Promise<Cluster | null> {
  const given = process.env.SVC_TEST_KUBECONFIG
  const kubectl = (kubeconfig: string, path: string): Cluster['kubectl'] => async (...words) => {
    const run = async (): Promise<{ readonly stdout: string } | { readonly error: unknown }> => {
      try {
        return await execute('kubectl', ['--kubeconfig', kubeconfig, ...words], { env: { ...process.env, PATH: path } })
      } catch (error) {
        if (isAway(error)) throw error
        return { error }
      }
    }
    const end = await eventually('the API server answers kubectl', run)
    if ('error' in end) throw end.error
    return end.stdout
  }
  if (given !== undefined) return { kubeconfig: given, folder: null, kubectl: kubectl(given, process.env.PATH!) }
  if (!existsSync(join(tools, '4-start.sh')) || process.getuid?.() !== 0) {
    t.pass('skipped', { skip: 'neither SVC_TEST_KUBECONFIG nor SVC_TEST_KUBERNETES_TOOLS leads to a cluster, or this is not root' })
    return null
  }
  t.teardown(() => execute(script, ['stop']))
  // one that a ring left which was killed has what that ring made
  await execute(script, ['stop'])
  await execute(script, ['start'], { timeout: 300_000 })
  const kubeconfig = (await execute(script, ['env'])).stdout.trim().split('=')[1]!
  const folder = join(kubeconfig, '../..')
  return { kubeconfig, folder, kubectl: kubectl(kubeconfig, pathOf(folder)) }
}

/** The API server never had what was asked: a busy machine, or one that is starting again. */
function isAway (error: unknown): boolean {
  const { stderr = '' } = error as { readonly stderr?: string }
  return /connection refused|TLS handshake timeout|connection reset by peer|etcdserver: |: EOF$/m.test(stderr)
}

/** Programs of the cluster are known by the bare name that they are called by. */
export function pathOf (folder: string): string {
  return `${join(folder, 'bin')}:${process.env.PATH!}`
}
