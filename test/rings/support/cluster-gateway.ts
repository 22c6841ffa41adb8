import { execFile, spawn } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { root } from '../../repository.js'
import { pathOf, type Cluster } from './cluster.js'

const execute = promisify(execFile)

export const NAMESPACE = 'svc'
export const ENGINES = 'app.kubernetes.io/managed-by=svc-gateway'
const GATEWAYS = 'app.kubernetes.io/component=gateway'

export interface GatewayPod {
  readonly name: string
  readonly address: string
  readonly isReady: boolean
  /** How often its container was started anew. */
  readonly restarts: number
  /** Of the gateway's container, as containerd has it. */
  readonly container: string
}

interface Pod {
  readonly metadata: { readonly name: string, readonly uid: string }
  readonly status: { readonly podIP?: string, readonly containerStatuses?: readonly ContainerStatus[] }
}

interface ContainerStatus { readonly ready: boolean, readonly restartCount: number, readonly containerID?: string }

/** The gateway that `deploy/` makes, in a cluster of ours. */
export class ClusterGateway {
  readonly #cluster: Cluster
  readonly #folder: string

  constructor (cluster: Cluster) {
    this.#cluster = cluster
    this.#folder = cluster.folder!
  }

  kubectl (...words: readonly string[]): Promise<string> {
    return this.#cluster.kubectl('-n', NAMESPACE, ...words)
  }

  get env (): NodeJS.ProcessEnv {
    return { ...process.env, KUBECONFIG: this.#cluster.kubeconfig, PATH: pathOf(this.#folder) }
  }

  async #ctr (...words: readonly string[]): Promise<string> {
    return (await execute('ctr', ['-a', join(this.#folder, 'run/cd.sock'), '-n', 'k8s.io', ...words])).stdout
  }

  /** Brings an image of a Docker engine onto the node. */
  async bring (host: string, image: string): Promise<void> {
    await execute('sh', ['-c', 'docker save "$1" | ctr -a "$2" -n k8s.io images import -', 'sh', image, join(this.#folder, 'run/cd.sock')],
      { env: { ...process.env, DOCKER_HOST: host } })
  }

  async rename (image: string, name: string): Promise<void> {
    await this.#ctr('images', 'tag', `docker.io/${image}`, name)
  }

  /** A volume of the node for each claim; gives their folders. */
  async volumes (): Promise<Readonly<Record<'svc-home' | 'svc-models', string>>> {
    const folders = { 'svc-home': join(this.#folder, 'run/volumes/home'), 'svc-models': join(this.#folder, 'run/volumes/models') }
    const items = []
    for (const [claim, path] of Object.entries(folders)) {
      await mkdir(path, { recursive: true })
      const onNode = { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['localhost'] }] }
      items.push({
        apiVersion: 'v1',
        kind: 'PersistentVolume',
        metadata: { name: claim },
        spec: {
          capacity: { storage: '100Gi' },
          accessModes: ['ReadWriteOnce'],
          local: { path },
          claimRef: { namespace: NAMESPACE, name: claim },
          nodeAffinity: { required: { nodeSelectorTerms: [onNode] } }
        }
      })
    }
    const file = join(this.#folder, 'run/volumes.json')
    await writeFile(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
    await this.kubectl('apply', '-f', file)
    return folders
  }

  async pods (selector: string): Promise<readonly Pod[]> {
    return (JSON.parse(await this.kubectl('get', 'pods', '-l', selector, '-o', 'json')) as { items: Pod[] }).items
  }

  async gateways (): Promise<readonly GatewayPod[]> {
    return (await this.pods(GATEWAYS)).map(({ metadata: { name }, status: { podIP = '', containerStatuses: [own] = [] } }) => ({
      name,
      address: `http://${podIP}:8080`,
      isReady: own?.ready ?? false,
      restarts: own?.restartCount ?? 0,
      container: (own?.containerID ?? '').replace(/^.*\/\//, '')
    }))
  }

  /** Runs `svc` in a gateway. */
  async svc (...words: readonly string[]): Promise<{ readonly code: number, readonly said: string }> {
    const child = spawn('kubectl', ['-n', NAMESPACE, 'exec', 'deployment/svc', '--', 'svc', ...words], { env: this.env, stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => { said += chunk.toString() })
    const code = await new Promise<number | null>(resolve => { child.once('close', resolve) })
    return { code: code ?? 1, said }
  }

  async remove (): Promise<void> {
    await this.kubectl('delete', 'deployment', 'svc', '--ignore-not-found', '--wait=false')
    await this.kubectl('delete', 'pods', '-l', GATEWAYS, '--grace-period=1')
  }

  /** Of a container; what it gives ends it with SIGKILL, as the kernel does for want of memory. */
  async processOf ({ container }: GatewayPod): Promise<() => void> {
    const line = (await this.#ctr('tasks', 'ls')).split('\n').find(each => each.startsWith(container))
    const pid = Number(line!.split(/\s+/)[1])
    return () => { process.kill(pid, 'SIGKILL') }
  }
}

export interface DeployPatch {
  /** Of the gateway, besides. */
  readonly env: Readonly<Record<string, string>>
  /** Tables of svc.toml, before its own. */
  readonly settings: string
}

/** A copy of `deploy/` with changes that a user would make there; resolves with the folder that it is in. */
export async function deployCopy (t: Test, patch: DeployPatch): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-deploy-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const own = join(folder, 'deploy')
  await cp(join(root, 'deploy'), own, { recursive: true })
  const path = '/spec/template/spec/containers/0/env/-'
  const variables = Object.entries(patch.env).map(([name, value]) => ({ op: 'add', path, value: { name, value } }))
  const patches = [{ target: { kind: 'Deployment', name: 'svc' }, patch: JSON.stringify(variables) }]
  await writeFile(join(own, 'kustomization.yaml'), `${await readFile(join(own, 'kustomization.yaml'), 'utf8')}patches: ${JSON.stringify(patches)}\n`)
  await writeFile(join(own, 'svc.toml'), `${patch.settings}${await readFile(join(own, 'svc.toml'), 'utf8')}`)
  return folder
}

/** The first commands of its README. */
export async function readmeCommands (): Promise<string> {
  const [, commands] = /```sh\n([^]*?)```/.exec(await readFile(join(root, 'deploy/README.md'), 'utf8'))!
  return commands!
}
