//! The provider does not take the portal's own secret: what people who sign in are told, and the platform team.
import { kubectl, person } from './cluster';
import { condition } from './portal';
import { expect, fillProvidersForm, test } from './site';

const TITLE =
  'a client secret that the provider refuses is told to people who sign in, and in the WaterDataApi with the remedy';

test(TITLE, { tag: '@alone' }, async ({ site, release }) => {
  test.setTimeout(900_000);
  site.provokes(/status of 502/);
  const { replicas = null, oidc } = release.portal;
  const { name, key } = oidc.clientSecretRef;
  // The provider knows nothing of it; nor has another try of this test used its name.
  const another = `secret-of-another-client-${Date.now().toString(36)}`;
  const stringData = { [key]: 'not-what-the-provider-has' };
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: another }, stringData };
  await kubectl(['apply', '-f', '-'], JSON.stringify(secret));
  // The operator asks one replica, and each knows of its own sign-ins.
  await release.declarePortal({ replicas: 1, oidc: { clientSecretRef: { name: another } } });
  const page = await site.browser();
  await page.goto('/');
  await page.locator('main a[href^="/auth/sign-in"]').click();
  await fillProvidersForm(page, person('acme'));
  await expect(page.getByText('Le fournisseur d’identité n’accepte pas ce site')).toBeVisible();
  // All of it at once: whenever the portal does not answer the operator, it is Unknown for a while.
  const message = expect.stringContaining(`key ${key} of Secret ${another}`);
  const told = { status: 'False', reason: 'ClientRefused', message };
  await expect.poll(() => condition('SignInReady'), { timeout: 60_000 }).toMatchObject(told);
  await release.declarePortal({ replicas, oidc: { clientSecretRef: { name } } });
  // If the test fails before this, the Secret stays: pods may name it until the release is back.
  await kubectl(['delete', 'secret', another]);
  await site.signedIn(person('acme'));
  const usable = { status: 'True', reason: 'ProviderUsable' };
  await expect.poll(() => condition('SignInReady'), { timeout: 60_000 }).toMatchObject(usable);
});
