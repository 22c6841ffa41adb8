import { stringify } from 'yaml'
import type { ClusterSettings } from '../settings.js'
import { neededRights, rightName } from './rights.js'

/** Of the account, its role and what binds them. */
const NAME = 'svc-gateway'
const NODES = 'svc-gateway-nodes'

/**
 * What an administrator applies: the namespace, an account, and the rights that the driver needs in it. The names of GPUs on
 * nodes are shown by a right of the whole cluster, which can be left out. Pure.
 */
export function clusterManifest (settings: Pick<ClusterSettings, 'reach'>, namespace: string): string {
  const rbac = 'rbac.authorization.k8s.io'
  const subjects = [{ kind: 'ServiceAccount', name: NAME, namespace }]
  const objects = [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: NAME, namespace } },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'Role',
      metadata: { name: NAME, namespace },
      rules: neededRights(settings).map(right => ({ apiGroups: [''], resources: [rightName(right)], verbs: [...right.verbs] }))
    },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'RoleBinding',
      metadata: { name: NAME, namespace },
      roleRef: { apiGroup: rbac, kind: 'Role', name: NAME },
      subjects
    },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRole',
      metadata: { name: NODES },
      rules: [{ apiGroups: [''], resources: ['nodes'], verbs: ['list'] }]
    },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name: `${NODES}-${namespace}` },
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: NODES },
      subjects
    }
  ]
  return objects.map(object => stringify(object, { lineWidth: 0 })).join('---\n')
}
