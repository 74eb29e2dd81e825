import { SECOND } from './looks';
import { testStates } from './states';

testStates(SECOND);
