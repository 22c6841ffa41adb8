import { posix } from 'node:path'
import type { ContainerForm, MountSpec } from 'svc-gateway/plugin'
import { kubernetesError } from '../errors.js'
import type { PodSettings } from '../settings.js'

export interface PodVolumes {
  readonly volumes: readonly object[]
  readonly mounts: readonly object[]
  readonly initContainers: readonly object[]
}

/** Checks what was fetched, and gives it its name only then. */
const FETCH = 'set -e; mkdir -p "$(dirname "$2")"; wget -q -O "$2.part" "$1"; echo "$3  $2.part" | sha256sum -c - >/dev/null; mv "$2.part" "$2"'

/** How a pod gets what a container has mounted. Throws `kubernetes.unsupported` for files of this host. Pure. */
export function podVolumes (form: ContainerForm, settings: PodSettings): PodVolumes {
  const volumes: object[] = []
  const mounts: object[] = []
  const models = form.mounts.filter(isModels)
  form.mounts.filter(mount => !isModels(mount)).forEach((mount, i) => {
    if (mount.readOnly) {
      throw kubernetesError('kubernetes.unsupported', `the engine reads ${mount.source} of this machine, which a pod cannot; put it below the models, or into the image`)
    }
    volumes.push({ name: `own-${i}`, emptyDir: {} })
    mounts.push({ name: `own-${i}`, mountPath: mount.target })
  })
  if (form.shmSizeBytes !== null) {
    volumes.push({ name: 'shm', emptyDir: { medium: 'Memory', sizeLimit: String(form.shmSizeBytes) } })
    mounts.push({ name: 'shm', mountPath: '/dev/shm' })
  }
  const initContainers = settings.model_storage === 'download' ? fetches(models, settings) : []
  models.forEach((mount, i) => {
    const { volume, subPath } = modelVolume(mount, models.length, settings)
    volumes.push({ name: `models-${i}`, ...volume })
    mounts.push({ name: `models-${i}`, mountPath: mount.target, readOnly: true, ...(subPath === '' ? {} : { subPath }) })
  })
  return { volumes, mounts, initContainers }
}

function modelVolume (
  { source }: MountSpec, count: number, settings: PodSettings
): { readonly volume: object, readonly subPath: string } {
  const { model_storage: storage, model_claim: claim, model_root: root, model_path: path } = settings
  if (storage === 'download') return { volume: { emptyDir: {} }, subPath: '' }
  const way = root === '' ? '' : wayBelow(root, source)
  if (storage === 'host-path') {
    const folder = path === '' ? source : posix.join(path, way)
    return { volume: { hostPath: { path: folder, type: 'Directory' } }, subPath: '' }
  }
  if (claim === '') throw kubernetesError('kubernetes.unsupported', 'model_storage is claim but no claim is set; set model_claim in [runtime.kubernetes] or in the runtime_options of the slot')
  if (root === '' && count > 1) throw kubernetesError('kubernetes.unsupported', 'the files of the model are in several folders; set model_root in [runtime.kubernetes] to the folder that the claim contains')
  return { volume: { persistentVolumeClaim: { claimName: claim, readOnly: true } }, subPath: way }
}

function wayBelow (root: string, folder: string): string {
  const way = posix.relative(root, folder)
  if (way !== '..' && !way.startsWith('../')) return way
  throw kubernetesError('kubernetes.unsupported', `the model is in ${folder}, which is not below model_root (${root}), and the cluster has only that`)
}

function fetches (models: readonly MountSpec[], { downloads, download_image: image }: PodSettings): readonly object[] {
  if (downloads.length === 0 && models.length > 0) throw kubernetesError('kubernetes.unsupported', 'model_storage is download but the slot has no downloads; add them to its runtime_options')
  const volumeMounts = models.map((mount, i) => ({ name: `models-${i}`, mountPath: mount.target }))
  return downloads.map(({ url, path, sha256 }, i) => {
    if (!models.some(({ target }) => path.startsWith(`${target}/`) && !path.split('/').includes('..'))) {
      throw kubernetesError('kubernetes.unsupported', `the download to ${path} is not below the folder of the model (${models.map(({ target }) => target).join(', ')})`)
    }
    const words = [url, path, sha256].map(word => word.replaceAll('$', '$$$$'))
    return {
      name: `fetch-${i}`,
      image,
      imagePullPolicy: 'IfNotPresent',
      command: ['sh', '-c', FETCH.replaceAll('$', '$$$$'), 'sh', ...words],
      terminationMessagePolicy: 'FallbackToLogsOnError',
      volumeMounts
    }
  })
}

/** The kernel mounts folders of models read-only, under the path that they have here. */
function isModels ({ readOnly, source, target }: MountSpec): boolean {
  return readOnly && source === target
}
