"""Who times what others acknowledge: what does it see of what they want, and of who they are?"""
