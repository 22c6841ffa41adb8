export { gatewayMisfit, jsonProblem, keyPlace } from '../../kernel/host/gateway-fit.js'
export { HOST_PACKAGE } from '../../kernel/host/package-source.js'
