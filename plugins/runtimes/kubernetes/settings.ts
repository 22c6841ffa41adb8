import type { ApplyClass, SettingsTable } from 'svc-gateway/plugin'
import { z } from 'zod'

const about = (apply: ApplyClass) => (description: string): { readonly description: string, readonly apply_class: ApplyClass } =>
  ({ description, apply_class: apply })
const gatewayRestart = about('gateway-restart')
const slotRestart = about('slot-restart')

const LONGEST_S = 86_400
const KEY = /^[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,251}[A-Za-z0-9])?$/
const QUANTITY = /^\d+(?:\.\d+)?(?:m|[kKMGTPE]i?)?$/

const name = z.string().max(253).regex(/^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)?$/, { error: 'must be the name of a Kubernetes object' })
const key = z.string().regex(KEY, { error: 'must be a Kubernetes key such as example.com/kind' })
const value = z.string().max(63).regex(/^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?$/, { error: 'must be a value of a Kubernetes label' })
const path = z.union([z.literal(''), z.string().max(4096).startsWith('/', { error: 'must be an absolute path' })])
const quantities = z.record(key, z.string().regex(QUANTITY, { error: 'must be a quantity such as 500m, 16Gi or 1' }))

const tolerationSchema = z.strictObject({
  key: z.string().max(253).default(''),
  operator: z.enum(['Exists', 'Equal']).default('Exists'),
  value: value.default(''),
  effect: z.enum(['', 'NoSchedule', 'PreferNoSchedule', 'NoExecute']).default('')
})
export type Toleration = z.output<typeof tolerationSchema>

const downloadSchema = z.strictObject({
  url: z.string().max(4096).regex(/^https?:\/\/[^\s]+$/, { error: 'must be an http(s) address' }),
  path: z.string().max(4096).startsWith('/', { error: 'must be an absolute path below the folder of the model' }),
  // by this alone: the wget of small images checks no certificates
  sha256: z.string().regex(/^[0-9a-f]{64}$/, { error: 'must be the 64 hex digits of the file' })
})

export const modelStorages = ['host-path', 'claim', 'download'] as const

/** What `[runtime.kubernetes]` says for all slots, and a slot's `runtime_options` for itself. */
const podShape = {
  node_selector: z.record(key, value).default({}).meta(slotRestart('Labels that a node must have')),
  tolerations: z.array(tolerationSchema).max(64).default([]).meta(slotRestart('Taints of nodes that engines may run on')),
  runtime_class: name.default('').meta(slotRestart('Runtime class of the pods, such as nvidia; empty is the one of the cluster')),
  restricted: z.boolean().default(false)
    .meta(slotRestart('Create pods that Pod Security level restricted admits: user 65532 instead of that of the image, and no capabilities')),
  registry_logins: z.array(name).max(16).default([]).meta(slotRestart('Names of the Secrets with registry logins')),
  model_storage: z.enum(modelStorages).default('host-path')
    .meta(slotRestart('Source of the models in pods: a folder of the node, a claim, or downloads into the pod')),
  model_claim: name.default('').meta(slotRestart('Claim with the models, which is mounted read-only; it is never created or deleted')),
  model_root: path.default('').meta(slotRestart('Folder of this host that corresponds to the claim or model_path; empty is the folder of the model')),
  model_path: path.default('').meta(slotRestart('Folder of the nodes with the contents of model_root; empty is the same path'))
}

export const slotOptionsSchema = z.strictObject({
  ...Object.fromEntries(Object.entries(podShape).map(([key, schema]) => [key, schema.unwrap().optional()])) as {
    [K in keyof typeof podShape]: z.ZodOptional<ReturnType<(typeof podShape)[K]['unwrap']>>
  },
  resources: z.strictObject({ requests: quantities.default({}), limits: quantities.default({}) }).optional()
    .meta({ description: 'Requests and limits of the container; unset asks for one GPU where the device is one' }),
  downloads: z.array(downloadSchema).max(64).default([]).meta({ description: 'Files that are fetched before the engine starts, for model_storage download' })
})
export type SlotOptions = z.output<typeof slotOptionsSchema>

export const reaches = ['pod', 'node-port', 'forward'] as const

const clusterSchema = z.strictObject({
  connect: z.enum(['auto', 'kubeconfig', 'in-cluster']).default('auto')
    .meta(gatewayRestart('How the cluster is found; auto is in-cluster for a gateway that runs in a pod, else the kubeconfig')),
  kubeconfig: path.default('').meta(gatewayRestart('Kubeconfig file; empty is KUBECONFIG, else ~/.kube/config')),
  context: z.string().max(253).default('').meta(gatewayRestart('Context of the kubeconfig; empty is the current one')),
  namespace: name.default('').meta(gatewayRestart('Namespace of the pods; empty is that of the context or of the gateway\'s pod, else default')),
  reach: z.enum(reaches).default('pod')
    .meta(gatewayRestart('How to reach engines: by the pod\'s address, by a port of the node, or forwarded by the API server, which is slow')),
  node_host: z.string().max(253).regex(/^[A-Za-z0-9.:-]*$/, { error: 'must be a host name or an address' }).default('')
    .meta(gatewayRestart('Host of node ports; empty is the address of the pod\'s node')),
  capacity_timeout_s: z.number().min(1).max(LONGEST_S).default(600).meta(slotRestart('How long a pod may wait for a node with room')),
  download_image: z.string().min(1).max(1024).default('busybox:1.37').meta(slotRestart('Image with sh, wget and sha256sum that fetches downloads')),
  ...podShape
})
export type ClusterSettings = z.output<typeof clusterSchema>

const runtimeSchema = z.strictObject({ kubernetes: clusterSchema.prefault({}) })

/** `[runtime.kubernetes]` of svc.toml. */
export const clusterSettings: SettingsTable<typeof runtimeSchema> = { name: 'runtime', schema: runtimeSchema }

const untouched = clusterSchema.parse({})

/** Whether svc.toml says anything of a cluster. Pure. */
export function isConfigured (settings: ClusterSettings): boolean {
  return JSON.stringify(settings) !== JSON.stringify(untouched)
}

/** What svc.toml adds to a pod of a slot that says this; defaults are left out. Pure. */
export function addedSettings (settings: ClusterSettings, options: SlotOptions): Partial<ClusterSettings> {
  const { model_storage: storage } = podSettings(settings, options)
  const keys = Object.keys(podShape) as Array<keyof typeof podShape>
  const added = keys.filter(key => options[key] === undefined && JSON.stringify(settings[key]) !== JSON.stringify(untouched[key]))
  const fetched = storage === 'download' && options.downloads.length > 0 ? ['download_image' as const] : []
  return Object.fromEntries([...added, ...fetched].map(key => [key, settings[key]]))
}

/** What a pod is made by: of the slot where it says something, else of all. Pure. */
export type PodSettings = Pick<ClusterSettings, keyof typeof podShape | 'download_image'> & Pick<SlotOptions, 'resources' | 'downloads'>

export function podSettings (settings: ClusterSettings, options: SlotOptions): PodSettings {
  const said = Object.fromEntries(Object.entries(options).filter(([, own]) => own !== undefined))
  return { ...settings, ...said, downloads: options.downloads }
}
