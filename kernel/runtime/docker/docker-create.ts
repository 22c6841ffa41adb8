import type Docker from 'dockerode'
import { svcError, type SvcError } from '../../contract/index.js'
import { LABEL_PORT, LABEL_PORTS, type ContainerForm, type EngineSpec } from '../../contract/provider/engine-runtime.js'
import type { EngineFacts } from './docker-connect.js'
import { usableReference } from '../image/image-ref.js'

/** Docker keeps this much output of a container, twice (README.md). */
const LOG_BOUNDS = { 'max-size': '5m', 'max-file': '2' }

export type ContainerSpec = EngineSpec & { readonly form: ContainerForm }

/** The body of a create request. Pure: equal specs and engines give equal requests. */
export function createBody (spec: ContainerSpec, facts: EngineFacts): Docker.ContainerCreateOptions {
  const { form, port, ports = {} } = spec
  const isPublished = form.network === 'bridge' && form.publishHost !== null
  // an empty host port lets the engine choose
  const published = isPublished
    ? [...[...port === null ? [] : [port], ...Object.values(ports)].map(each => [each, String(each)] as const),
        ...form.portInside === undefined ? [] : [[form.portInside, ''] as const]]
    : []
  const portLabels = {
    ...(port === null ? {} : { [LABEL_PORT]: String(port) }),
    ...(Object.keys(ports).length === 0 ? {} : { [LABEL_PORTS]: JSON.stringify(ports) })
  }
  return {
    Image: usableReference(form.image, form.digest),
    ...(form.entrypoint === null ? {} : { Entrypoint: [...form.entrypoint] }),
    Cmd: [...form.command],
    Env: Object.entries(spec.env).map(([name, value]) => `${name}=${value}`),
    Labels: { ...spec.labels, ...portLabels },
    ...(form.piped === true ? { OpenStdin: true, StdinOnce: true, AttachStdin: true } : {}),
    ...(form.workingDir === null ? {} : { WorkingDir: form.workingDir }),
    ...(published.length === 0 ? {} : { ExposedPorts: Object.fromEntries(published.map(([own]) => [`${own}/tcp`, {}])) }),
    HostConfig: {
      // a process 1 that passes signals on and collects dead children, which most engines do not do themselves
      Init: true,
      NetworkMode: form.network,
      ...(published.length === 0
        ? {}
        : { PortBindings: Object.fromEntries(published.map(([own, at]) => [`${own}/tcp`, [{ HostIp: form.publishHost!, HostPort: at }]])) }),
      // mounts rather than binds: a source that does not exist is an error, not a new folder owned by root
      Mounts: form.mounts.map(mount => ({ Type: 'bind', Source: mount.source, Target: mount.target, ReadOnly: mount.readOnly })),
      Devices: form.devices.map(path => ({ PathOnHost: path, PathInContainer: path, CgroupPermissions: 'rw' })),
      DeviceRequests: form.cdiDevices.length === 0 ? [] : [{ Driver: 'cdi', DeviceIDs: [...form.cdiDevices] } as Docker.DeviceRequest],
      ...groupsFor(form, facts),
      IpcMode: form.ipc,
      ...(form.shmSizeBytes === null ? {} : { ShmSize: form.shmSizeBytes }),
      Ulimits: Object.entries(form.ulimits).map(([Name, { soft, hard }]) => ({ Name, Soft: soft, Hard: hard })),
      SecurityOpt: securityFor(form, facts),
      // the gateway decides what runs
      RestartPolicy: { Name: 'no' },
      // a driver that can be read back, which the engine's default need not be
      LogConfig: form.piped === true ? { Type: 'none', Config: {} } : { Type: 'json-file', Config: LOG_BOUNDS }
    }
  }
}

/** What this engine would get wrong without saying so; null when it can run the spec. Pure. */
export function unsupported (spec: ContainerSpec, facts: EngineFacts): SvcError | null {
  if (spec.form.cdiDevices.length === 0 || facts.kind !== 'podman' || !isOlder(facts.version, 5, 4)) return null
  return svcError('runtime.failed',
    `Podman ${facts.version} ignores CDI devices (${spec.form.cdiDevices.join(', ')}) on its Docker-compatible socket, so ${spec.name} would run without its GPU; use Podman 5.4 or newer, or Docker`,
    { details: { cdi_devices: spec.form.cdiDevices } })
}

/**
 * A rootless Podman maps group numbers into its user namespace, where they are other groups. What `--group-add
 * keep-groups` of its command line stands for does work: the container keeps the groups of the user (crun only).
 */
function groupsFor (form: ContainerForm, facts: EngineFacts): { GroupAdd?: string[], Annotations?: Record<string, string> } {
  if (facts.kind !== 'podman' || !facts.rootless) return { GroupAdd: form.groups.map(String) }
  return form.groups.length === 0 ? {} : { Annotations: { 'run.oci.keep_original_groups': '1' } }
}

/** SELinux keeps containers from host files. Off for this container, rather than relabelling the operator's models. */
function securityFor (form: ContainerForm, facts: EngineFacts): string[] {
  const given = [...form.securityOpts]
  const needed = facts.selinux && form.mounts.length > 0 && !given.some(option => option.startsWith('label=') || option.startsWith('label:'))
  return needed ? [...given, 'label=disable'] : given
}

function isOlder (version: string, major: number, minor: number): boolean {
  const match = /^(\d+)\.(\d+)/.exec(version)
  if (match === null) return false
  const [have, haveMinor] = [Number(match[1]), Number(match[2])]
  return have < major || (have === major && haveMinor < minor)
}
