//! The provider does not take the portal's own secret: what people who sign in are told, and the platform team.
import { kubectl, person } from './cluster';
import { condition, declaredPortal, declarePortal } from './portal';
import { expect, fillProvidersForm, test } from './site';

/** A Secret that the provider knows nothing of. */
const ANOTHER = 'secret-of-another-client';

test('a client secret that the provider refuses is told to people who sign in, and in the WaterDataApi with the remedy', { tag: '@alone' }, async ({ site }) => {
  test.setTimeout(900_000);
  site.provokes(/status of 502/);
  const { replicas = null, oidc } = await declaredPortal();
  const { key } = oidc.clientSecretRef;
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: ANOTHER }, stringData: { [key]: 'not-what-the-provider-has' } };
  await kubectl(['apply', '-f', '-'], JSON.stringify(secret));
  try {
    // The operator asks one replica, and each knows of its own sign-ins.
    await declarePortal({ replicas: 1, oidc: { clientSecretRef: { name: ANOTHER } } });
    const page = await site.browser();
    await page.goto('/');
    await page.locator('main a[href^="/auth/sign-in"]').click();
    await fillProvidersForm(page, person('acme'));
    await expect(page.getByText('Le fournisseur d’identité n’accepte pas ce site')).toBeVisible();
    // All of it at once: whenever the portal does not answer the operator, it is Unknown for a while.
    const told = { status: 'False', reason: 'ClientRefused', message: expect.stringContaining(`key ${key} of Secret ${ANOTHER}`) };
    await expect.poll(() => condition('SignInReady'), { timeout: 60_000 }).toMatchObject(told);
  } finally {
    await declarePortal({ replicas, oidc: { clientSecretRef: { name: oidc.clientSecretRef.name } } });
    await kubectl(['delete', 'secret', ANOTHER]);
  }
  await site.signedIn(person('acme'));
  await expect.poll(() => condition('SignInReady'), { timeout: 60_000 }).toMatchObject({ status: 'True', reason: 'ProviderUsable' });
});
