import { defineErrors } from 'svc-gateway/plugin'

export const kubernetesError = defineErrors('kubernetes', {
  config: { status: 503, when: 'the kubeconfig cannot be read or is not usable' },
  credentials: { status: 503, heals: true, when: 'the command or file for the credentials of the cluster returned none' },
  unauthorized: { status: 503, heals: true, when: 'the cluster does not accept the credentials' },
  forbidden: { status: 503, heals: true, when: 'the gateway\'s account lacks a right in the cluster' },
  untrusted: { status: 503, heals: true, when: 'the certificate of the API server cannot be verified' },
  unavailable: { status: 503, heals: true, when: 'the API server does not answer, or is too busy' },
  namespace_missing: { status: 503, heals: true, when: 'the namespace does not exist' },
  refused: { status: 502, when: 'the API server refused an object' },
  unsupported: { status: 400, when: 'a launch needs something that a pod cannot provide' },
  no_capacity: { status: 503, heals: true, when: 'no node had room for the pod within capacity_timeout_s' },
  claim_pending: { status: 503, heals: true, when: 'a claim that the pod mounts was bound to no volume within capacity_timeout_s' },
  claim_missing: { status: 503, heals: true, when: 'a claim that the pod mounts does not exist' },
  image_absent: { status: 502, when: 'the image does not exist, or may not be pulled' },
  image_pull: { status: 502, heals: true, when: 'the image could not be pulled' },
  object_missing: { status: 502, heals: true, when: 'a Secret, runtime class or other object that the pod names does not exist' },
  volume: { status: 502, heals: true, when: 'a volume of the pod cannot be mounted' },
  not_runnable: { status: 502, when: 'the container could not be started, for example because a program is missing in the image, or a runtime on the node' },
  evicted: { status: 503, heals: true, when: 'the pod was refused or evicted by its node before the engine ran' }
})
