import { LABEL_INSTANCE, LABEL_PLACE, LABEL_SLOT, type ContainerForm, type EngineSpec } from 'svc-gateway/plugin'
import { kubernetesError } from '../errors.js'
import type { PodSettings } from '../settings.js'
import {
  CONTAINER, ENGINE_LABEL, INSTANCE_LABEL, instanceValue, LAUNCH_ANNOTATION, MANAGED_BY, MANAGED_LABEL, START_GATE,
  type KeptLaunch
} from './pod-names.js'
import { podVolumes } from './pod-volumes.js'

export interface PodInput {
  readonly id: string
  readonly spec: EngineSpec
  readonly settings: PodSettings
  /** Between SIGTERM and SIGKILL; a pod cannot be given another one later. */
  readonly graceS: number
}

/** What a device asks for where the slot names no resources. */
const GPU_RESOURCES: Readonly<Record<string, string>> = { 'gpu-cuda': 'nvidia.com/gpu', 'gpu-rocm': 'amd.com/gpu' }

/** The user of distroless images and of the gateway's, which writes the models. */
const USER = 65_532
const RESTRICTED_POD = { securityContext: { runAsNonRoot: true, runAsUser: USER, runAsGroup: USER, seccompProfile: { type: 'RuntimeDefault' } } }
const RESTRICTED_CONTAINER = { securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } } }

/** The pod of a launch, which waits at its gate. Throws `kubernetes.unsupported` for what a pod cannot have. Pure. */
export function podManifest ({ id, spec, settings, graceS }: PodInput): object {
  const form = containerOf(spec)
  const kept: KeptLaunch = {
    id, name: spec.name, labels: spec.labels, port: spec.port, ...(spec.ports === undefined ? {} : { ports: spec.ports })
  }
  const { volumes, mounts, initContainers } = podVolumes(form, settings)
  const own = settings.restricted ? RESTRICTED_CONTAINER : {}
  const ports = [...spec.port === null ? [] : [['main', spec.port] as const], ...Object.values(spec.ports ?? {}).map((port, i) => [`more-${i}`, port] as const)]
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: id,
      labels: {
        [MANAGED_LABEL]: MANAGED_BY,
        [INSTANCE_LABEL]: instanceValue(spec.labels[LABEL_INSTANCE] ?? ''),
        [ENGINE_LABEL]: id
      },
      annotations: { [LAUNCH_ANNOTATION]: JSON.stringify(kept) }
    },
    spec: {
      schedulingGates: [{ name: START_GATE }],
      // a crash is the slot's to answer, with its back-off
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: graceS,
      enableServiceLinks: false,
      automountServiceAccountToken: false,
      ...(settings.restricted ? RESTRICTED_POD : {}),
      ...(form.network === 'host' ? { hostNetwork: true, dnsPolicy: 'ClusterFirstWithHostNet' } : {}),
      ...(settings.runtime_class === '' ? {} : { runtimeClassName: settings.runtime_class }),
      ...(Object.keys(settings.node_selector).length === 0 ? {} : { nodeSelector: settings.node_selector }),
      ...(settings.tolerations.length === 0 ? {} : { tolerations: settings.tolerations.map(withoutEmpty) }),
      ...(settings.registry_logins.length === 0 ? {} : { imagePullSecrets: settings.registry_logins.map(name => ({ name })) }),
      ...(initContainers.length === 0 ? {} : { initContainers: initContainers.map(container => ({ ...container, ...own })) }),
      containers: [{
        name: CONTAINER,
        image: imageOf(form),
        imagePullPolicy: 'IfNotPresent',
        ...(form.entrypoint === null ? {} : { command: form.entrypoint.map(literal) }),
        ...(form.command.length === 0 ? {} : { args: form.command.map(literal) }),
        ...(form.workingDir === null ? {} : { workingDir: form.workingDir }),
        env: Object.entries(spec.env).map(([name, value]) => ({ name, value: literal(value) })),
        ports: ports.map(([name, containerPort]) => ({ name, containerPort })),
        resources: resourcesOf(spec, settings),
        terminationMessagePolicy: 'FallbackToLogsOnError',
        ...own,
        ...(mounts.length === 0 ? {} : { volumeMounts: mounts })
      }],
      ...(volumes.length === 0 ? {} : { volumes })
    }
  }
}

/** The form of a launch that can be a pod. Throws `kubernetes.unsupported`. Pure. */
export function containerOf ({ form, labels }: EngineSpec): ContainerForm {
  const slot = labels[LABEL_SLOT] ?? ''
  const refuse = (what: string): never => {
    throw kubernetesError('kubernetes.unsupported', `slot '${slot}' cannot run in the cluster: ${what}`, { details: { slot } })
  }
  if (form.kind !== 'container') return refuse('it is a program of this machine; give it an image')
  if (form.piped === true) return refuse('its program communicates over standard streams')
  if (form.portInside !== undefined) return refuse('its image has a port of its own')
  if (form.devices.length > 0 || form.cdiDevices.length > 0) return refuse(`it needs device nodes (${[...form.devices, ...form.cdiDevices].join(', ')}); ask for \`resources\` of a device plugin instead`)
  if (Object.keys(form.ulimits).length > 0) return refuse('it needs ulimits, which pods do not have')
  if (form.ipc === 'host') return refuse('it needs the IPC namespace of its host')
  return form
}

/** Kubernetes puts variables in place of `$(NAME)` in arguments and values, and reads `$$` as `$`. */
function literal (text: string): string {
  return text.replaceAll('$', '$$$$')
}

/** By its digest, where there is one: `repository@sha256:…`. */
function imageOf ({ image, digest }: ContainerForm): string {
  if (digest === null) return image
  const bare = image.split('@')[0]!
  const slash = bare.lastIndexOf('/')
  const colon = bare.lastIndexOf(':')
  return `${colon > slash ? bare.slice(0, colon) : bare}@${digest}`
}

function resourcesOf ({ labels }: EngineSpec, { resources }: PodSettings): object {
  if (resources !== undefined) return resources
  const [, device = ''] = (labels[LABEL_PLACE] ?? '').split(' ')
  const gpu = GPU_RESOURCES[device]
  return gpu === undefined ? {} : { limits: { [gpu]: '1' } }
}

function withoutEmpty (row: Readonly<Record<string, string>>): object {
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== ''))
}
